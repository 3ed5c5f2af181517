"""The names that this process goes by: each bound to one session, and claimed against all others.

A name is bound here, at once, before its claim is awaited: of many who want it exactly one goes
on, and the others learn whose it is. The claim itself is the store's lock. Whether a name belongs
to somebody outside, a teammate say, is a question that whoever joins the pieces puts in (`MayTake`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias
from weakref import WeakValueDictionary

from laneway.base.errors import IdentityHeld, IdentityTaken, MemberForeign, StoreError
from laneway.core.background import Chores
from laneway.core.judgement import MAX_NUMBERED, numbered
from laneway.core.records import Claim, Records

MayTake: TypeAlias = Callable[[str], Awaitable[None]]
"""Raises `MemberForeign` if a name belongs to somebody else, for reasons that this ring does not know."""


async def anybody(identity: str) -> None:
    """Where there is no team, there is nobody else."""


class _Binding:
    __slots__ = ("agent_id", "claim")

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.claim: Claim | None = None


class Identities:
    def __init__(self, records: Records, chores: Chores, may_take: MayTake = anybody) -> None:
        self._records = records
        self._chores = chores
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
        """Hold a name from now on, with or without a session.

        `IdentityHeld` if another process does, `MemberForeign` if it is somebody else's.
        """
        self._records.check(identity)
        async with self._lock(identity):
            if identity in self._reserved:
                return
            binding = self._bound.get(identity)
            held = binding.claim if binding else None
            self._reserved[identity] = held or await self._checked_claim(identity, None)

    async def release_reserved(self) -> None:
        """At the very end."""
        while self._reserved:
            _, claim = self._reserved.popitem()
            await claim.release()

    async def take(self, identity: str, agent_id: str) -> Claim:
        """This name or none: `IdentityTaken` by one of ours, `IdentityHeld` by another process, or
        `MemberForeign`: somebody else's."""
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
        """This name, or its next free number."""
        for name in numbered(identity, self._bound):
            try:
                return name, await self.take(name, agent_id)
            except (IdentityHeld, IdentityTaken, MemberForeign):
                continue
        raise StoreError(f"{MAX_NUMBERED} sessions are called {identity} or a number of it. Close some.")

    async def drop(self, identity: str, agent_id: str) -> None:
        """The name is free again, for everybody."""
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
        """The claim of a name that is ours, or, if the name is free, one for this block only."""
        self._records.check(identity)
        async with self._lock(identity):
            binding = self._bound.get(identity)
            ours = self._reserved.get(identity) or (binding.claim if binding else None)
            if ours is not None:
                yield ours
                return
            claim = await self._claim(identity, None)
            try:
                yield claim
            finally:
                await asyncio.shield(self._chores.spawn(claim.release(), "release"))

    def _lock(self, identity: str) -> asyncio.Lock:
        lock = self._locks.get(identity)
        if lock is None:
            lock = self._locks[identity] = asyncio.Lock()
        return lock

    async def _claim_for(self, identity: str, agent_id: str) -> Claim:
        reserved = self._reserved.get(identity)
        if reserved is None:
            return await self._checked_claim(identity, agent_id)
        await self._may_take(identity)  # it may have become somebody's since it was reserved
        await reserved.tell(agent_id)
        return reserved

    async def _checked_claim(self, identity: str, agent_id: str | None) -> Claim:
        """A claim on a name that is nobody else's. Looked at while it is held: then no Laneway takes it."""
        claim = await self._claim(identity, agent_id)
        try:
            await self._may_take(identity)
        except BaseException:
            await asyncio.shield(self._chores.spawn(claim.release(), "release"))
            raise
        return claim

    async def _claim(self, identity: str, agent_id: str | None) -> Claim:
        claiming = self._chores.spawn(self._records.claim(identity, agent_id), "claim")
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The thread that claims cannot be called back: what it gets is let go again, before we go.
            await asyncio.shield(self._chores.spawn(_let_go(claiming), "release"))
            raise


async def _let_go(claiming: asyncio.Task[Claim]) -> None:
    try:
        claim = await claiming
    except StoreError:
        return  # it was refused: there is nothing to let go
    await claim.release()
