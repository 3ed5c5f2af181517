"""Opens one named session: claims its name, starts or resumes its thread, writes its record.

All of it or nothing: a failure undoes what was done. `NamedSessions` decides whether a session may
open, and knows those that are open already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import EngineError, EngineRefused, IdentityTaken, SessionClosed, ThreadUnknown
from laneway.base.ids import new_id
from laneway.core.audience import Reader
from laneway.core.background import TaskSet
from laneway.core.hub import Hub
from laneway.core.named.identities import Identities
from laneway.core.named.opening import Budget, Opening, new_record, spec_of, with_spec
from laneway.core.named.records import Claim, Record, Records
from laneway.core.named.session import NamedSession
from laneway.core.named.writers import RecordWriter
from laneway.core.session import Session

log = logging.getLogger(__name__)


class SessionOpener:
    """Opens new sessions and reopens recorded ones."""

    def __init__(
        self,
        hub: Hub,
        records: Records,
        names: Identities,
        tasks: TaskSet,
        *,
        default_identity: str,
        budget: Budget,
        persist: bool,
        check: Callable[[], None],
        register: Callable[[NamedSession], None],
    ) -> None:
        self._hub = hub
        self._records = records
        self._names = names
        self._tasks = tasks
        self._default_identity = default_identity
        self._budget = budget
        self._persist = persist
        self._check = check
        """Raises if no session may open any more: a shutdown can begin while one opens."""
        self._register = register
        """Called right after the check, with nothing awaited in between."""

    async def open_new(self, principal: str, opening: Opening, readers: Sequence[Reader]) -> NamedSession:
        """Open a new session, under the requested name or the next free one."""
        agent_id = new_id("agent")
        if opening.identity is not None:
            identity, claim = opening.identity, await self._names.take(opening.identity, agent_id)
        else:
            identity, claim = await self._names.take_free(self._default_identity, agent_id)
        try:
            spec = opening.spec
            if not self._persist:
                spec = msgspec.structs.replace(spec, ephemeral=True)
            backend = self._hub.engines.get(spec.backend).backend
            spec = msgspec.structs.replace(spec, backend=backend)
            opening = msgspec.structs.replace(opening, spec=spec)
            record = new_record(opening, identity, agent_id, self._records.team, self._records.now())
            session = await self._hub.start(
                principal, spec, identity=identity, agent_id=agent_id, readers=readers
            )
            record = msgspec.structs.replace(record, tools=list(session.spec.had_tools))
            fallback = msgspec.structs.replace(record, status="closed")
            return await self._make_known(session, claim, record, None, fallback)
        except BaseException:
            await asyncio.shield(self._tasks.spawn(self._undo(identity, agent_id), "undo"))
            raise

    async def reopen(
        self, principal: str, record: Record, changes: Mapping[str, Any], readers: Sequence[Reader]
    ) -> NamedSession:
        """Resume a recorded session under its own name, id and thread."""
        identity, agent_id, thread_id = record.identity, record.agent_id, record.thread_id
        if thread_id is None or record.ephemeral:
            raise SessionClosed(f"Session {agent_id} was not kept: start a new one")
        summary = await self._records.summary(identity, thread_id)
        claim = await self._names.take(identity, agent_id)
        try:
            # The record may have changed before we held the claim. Or it is gone, because claiming a name
            # deletes its oldest records: this one was asked for before that.
            stored = await claim.get(agent_id) or record
            summary = await self._records.summary(identity, thread_id) or summary
            if summary is None:
                log.warning("There is no summary of %s (%s); it is resumed without", agent_id, identity)
            spec = spec_of(stored, changes, Path.cwd())
            try:
                session = await self._hub.resume(
                    principal, thread_id, spec, identity=identity, agent_id=agent_id, readers=readers
                )
            except (EngineRefused, ThreadUnknown) as refused:
                if not await self._may_begin_anew(stored, summary, refused):
                    raise
                session = await self._hub.start(
                    principal, spec, identity=identity, agent_id=agent_id, readers=readers
                )
                stored = msgspec.structs.replace(stored, tools=list(session.spec.had_tools))
            if session.agent_id != agent_id:
                raise IdentityTaken(identity, session.agent_id)  # another session has the thread
            now = self._records.now()
            record = msgspec.structs.replace(with_spec(stored, spec), status="active", last_active=now)
            return await self._make_known(session, claim, record, summary, stored)
        except BaseException:
            await asyncio.shield(self._tasks.spawn(self._undo(identity, agent_id), "undo"))
            raise

    async def _may_begin_anew(self, stored: Record, summary: str | None, refused: EngineError) -> bool:
        """Whether a new thread may replace one that the engine does not have, without losing anything."""
        if isinstance(refused, ThreadUnknown):
            return stored.is_empty  # its process was killed before the engine wrote the thread to disk
        # An engine that cannot resume threads: the summary tells the new one what there was.
        return summary is not None and not (await self._hub.engines.get(stored.backend).abilities()).resume

    async def _make_known(
        self, session: Session, claim: Claim, record: Record, summary: str | None, fallback: Record
    ) -> NamedSession:
        """Write a session's record and register it; if that fails, `fallback` becomes its record."""
        named = NamedSession(
            session,
            record,
            writer=lambda snapshot: RecordWriter(claim, snapshot, self._tasks),
            budget=self._budget,
            now=self._records.now,
            summary=summary,
        )
        session.observer = named
        writing = self._tasks.spawn(claim.put(named.record), "first record")
        try:
            await asyncio.shield(writing)
            self._check()
            if session.status == "closed":
                raise SessionClosed(f"Session {session.agent_id} ended as it began")
        except BaseException:
            await asyncio.shield(self._tasks.spawn(_take_back(named, claim, writing, fallback), "undo"))
            raise
        self._register(named)
        return named

    async def _undo(self, identity: str, agent_id: str) -> None:
        """Close the session and free its name."""
        session = self._hub.by_agent(agent_id)
        if session is not None:
            await session.close()
            await self._hub.wait_gone(agent_id)
        await self._names.drop(identity, agent_id)


async def _take_back(
    named: NamedSession, claim: Claim, writing: asyncio.Task[None], fallback: Record
) -> None:
    await asyncio.wait((writing,))
    await named.writer.stop()
    if await claim.get(named.agent_id) is not None:
        await claim.put(fallback)
