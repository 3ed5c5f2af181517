"""Identities (names) of this process's sessions: bound to one session each, claimed against other processes.

A name is bound at once, before its claim is awaited: of many concurrent callers exactly one goes on,
and the others learn which session has it. The claim itself is a lock of the store. Whether a name
belongs to somebody outside, such as a teammate, is checked by a function of the caller (`MayTake`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias
from weakref import WeakValueDictionary

from laneway.base.errors import IdentityHeld, IdentityTaken, MemberForeign, StoreError
from laneway.core.background import TaskSet
from laneway.core.named.records import Claim, Records
from laneway.core.named.rules import MAX_NUMBERED, numbered

MayTake: TypeAlias = Callable[[str], Awaitable[None]]
"""Raises `MemberForeign` if a name belongs to somebody else, such as a member of the mail team."""


async def allow_all(identity: str) -> None:
    """A `MayTake` that allows every name: without a team there is nobody else."""


class _Binding:
    __slots__ = ("agent_id", "claim")

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.claim: Claim | None = None


class Identities:
    """The names that are bound or reserved by this process."""

    def __init__(self, records: Records, tasks: TaskSet, may_take: MayTake = allow_all) -> None:
        self._records = records
        self._tasks = tasks
        self._may_take = may_take
        self._bound: dict[str, _Binding] = {}
        self._reserved: dict[str, Claim] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def holder(self, identity: str) -> str | None:
        """The agent that has the name in this process, or one that differs in case alone."""
        folded = identity.casefold()
        return next(
            (bound.agent_id for name, bound in self._bound.items() if name.casefold() == folded), None
        )

    async def reserve(self, identity: str) -> None:
        """Claim a name from now on, with or without a session.

        `IdentityHeld` if another process does, `MemberForeign` if it is somebody else's.
        """
        self._records.check(identity)
        async with self._lock(identity):
            if identity in self._reserved:
                return
            binding = self._bound.get(identity)
            own_claim = binding.claim if binding else None
            self._reserved[identity] = own_claim or await self._checked_claim(identity, None)

    async def release_reserved(self) -> None:
        """Release all reserved names, at the end of the process."""
        while self._reserved:
            _, claim = self._reserved.popitem()
            await claim.release()

    async def take(self, identity: str, agent_id: str) -> Claim:
        """Bind exactly this name: else `IdentityTaken` (one of our sessions has it), `IdentityHeld`
        (another process), or `MemberForeign` (somebody else in the team)."""
        self._records.check(identity)
        holder = self.holder(identity)
        if holder is not None:
            raise IdentityTaken(identity, holder)
        binding = self._bound[identity] = _Binding(agent_id)
        try:
            async with self._lock(identity):
                binding.claim = await self._claim_for(identity, agent_id)
        except BaseException:
            del self._bound[identity]
            raise
        return binding.claim

    async def take_free(self, identity: str, agent_id: str) -> tuple[str, Claim]:
        """Bind this name, or the name with the next free number."""
        for name in numbered(identity, self._bound):
            try:
                return name, await self.take(name, agent_id)
            except (IdentityHeld, IdentityTaken, MemberForeign):
                continue
        raise StoreError(f"{MAX_NUMBERED} sessions are called {identity} or a number of it. Close some.")

    async def drop(self, identity: str, agent_id: str) -> None:
        """Unbind a name of this session and release its claim, unless the name is reserved."""
        binding = self._bound.get(identity)
        if binding is None or binding.agent_id != agent_id:
            return
        async with self._lock(identity):
            if binding.claim is not None and identity not in self._reserved:
                await binding.claim.release()
            if self._bound.get(identity) is binding:
                del self._bound[identity]

    @asynccontextmanager
    async def holding(self, identity: str) -> AsyncIterator[Claim]:
        """Our claim on this name or, if the name is free, a claim for this block only."""
        self._records.check(identity)
        async with self._lock(identity):
            binding = self._bound.get(identity)
            own_claim = self._reserved.get(identity) or (binding.claim if binding else None)
            if own_claim is not None:
                yield own_claim
                return
            claim = await self._claim(identity, None)
            try:
                yield claim
            finally:
                await asyncio.shield(self._tasks.spawn(claim.release(), "release"))

    def _lock(self, identity: str) -> asyncio.Lock:
        lock = self._locks.get(identity)
        if lock is None:
            lock = self._locks[identity] = asyncio.Lock()
        return lock

    async def _claim_for(self, identity: str, agent_id: str) -> Claim:
        reserved = self._reserved.get(identity)
        if reserved is None:
            return await self._checked_claim(identity, agent_id)
        await self._may_take(identity)  # a teammate may have taken it since it was reserved
        await reserved.tell(agent_id)
        return reserved

    async def _checked_claim(self, identity: str, agent_id: str | None) -> Claim:
        """Claim a name and check that it is nobody else's: then no other Laneway can take it."""
        claim = await self._claim(identity, agent_id)
        try:
            await self._may_take(identity)
        except BaseException:
            await asyncio.shield(self._tasks.spawn(claim.release(), "release"))
            raise
        return claim

    async def _claim(self, identity: str, agent_id: str | None) -> Claim:
        claim_task = self._tasks.spawn(self._records.claim(identity, agent_id), "claim")
        try:
            return await asyncio.shield(claim_task)
        except asyncio.CancelledError:
            # The thread that claims cannot be cancelled: what it gets is released before we return.
            await asyncio.shield(self._tasks.spawn(_release_when_claimed(claim_task), "release"))
            raise


async def _release_when_claimed(claim_task: asyncio.Task[Claim]) -> None:
    try:
        claim = await claim_task
    except StoreError:
        return  # it was refused: there is nothing to release
    await claim.release()
