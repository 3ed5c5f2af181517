"""The beginning of one colleague: a name, a thread, an entry on the disk; all of it, or nothing.

Works on what it is handed and answers with a `Colleague`. Whether anybody may begin, and who
is there already, is `Colleagues`' business.
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
from laneway.core.background import Chores, Keeper
from laneway.core.colleague import Colleague
from laneway.core.hub import Hub
from laneway.core.identities import Identities
from laneway.core.opening import Budget, Opening, new_record, spec_of, with_spec
from laneway.core.records import Claim, Record, Records
from laneway.core.session import Session

log = logging.getLogger(__name__)


class Arrivals:
    def __init__(
        self,
        hub: Hub,
        records: Records,
        names: Identities,
        chores: Chores,
        *,
        default_identity: str,
        budget: Budget,
        persist: bool,
        check: Callable[[], None],
        welcome: Callable[[Colleague], None],
    ) -> None:
        self._hub = hub
        self._records = records
        self._names = names
        self._chores = chores
        self._default_identity = default_identity
        self._budget = budget
        self._persist = persist
        self._check = check
        """Raises if nobody may begin any more: everything can be shut down while one begins."""
        self._welcome = welcome
        """Called in the same breath as the check."""

    async def first(self, principal: str, opening: Opening, readers: Sequence[Reader]) -> Colleague:
        """A new session, under the name that was asked for or the next free one."""
        agent_id = new_id("agent")
        if opening.identity is not None:
            identity, claim = opening.identity, await self._names.take(opening.identity, agent_id)
        else:
            identity, claim = await self._names.take_free(self._default_identity, agent_id)
        try:
            spec = opening.spec
            if not self._persist:
                spec = msgspec.structs.replace(spec, ephemeral=True)
                opening = msgspec.structs.replace(opening, spec=spec)
            record = new_record(opening, identity, agent_id, self._records.team, self._records.now())
            session = await self._hub.start(
                principal, spec, identity=identity, agent_id=agent_id, readers=readers
            )
            record = msgspec.structs.replace(record, tools=list(session.spec.had_tools))
            instead = msgspec.structs.replace(record, status="closed")
            return await self._settle_in(session, claim, record, None, instead)
        except BaseException:
            await asyncio.shield(self._chores.spawn(self._undo(identity, agent_id), "undo"))
            raise

    async def again(
        self, principal: str, record: Record, changes: Mapping[str, Any], readers: Sequence[Reader]
    ) -> Colleague:
        """A session that was, under its own name and id, on its own thread."""
        identity, agent_id, thread_id = record.identity, record.agent_id, record.thread_id
        if thread_id is None or record.ephemeral:
            raise SessionClosed(f"Session {agent_id} was not kept: start a new one")
        summary = await self._records.summary(identity, thread_id)
        claim = await self._names.take(identity, agent_id)
        try:
            # It may have changed before it was ours. And claiming a name forgets its oldest sessions:
            # this one was asked for in time.
            kept = await claim.get(agent_id) or record
            summary = await self._records.summary(identity, thread_id) or summary
            if summary is None:
                log.warning("There is no summary of %s (%s); it is resumed without", agent_id, identity)
            spec = spec_of(kept, changes, Path.cwd())
            try:
                session = await self._hub.resume(
                    principal, thread_id, spec, identity=identity, agent_id=agent_id, readers=readers
                )
            except (EngineRefused, ThreadUnknown) as refused:
                if not await self._may_begin_anew(kept, summary, refused):
                    raise
                session = await self._hub.start(
                    principal, spec, identity=identity, agent_id=agent_id, readers=readers
                )
                kept = msgspec.structs.replace(kept, tools=list(session.spec.had_tools))
            if session.agent_id != agent_id:
                raise IdentityTaken(identity, session.agent_id)  # another session has the thread
            now = self._records.now()
            record = msgspec.structs.replace(with_spec(kept, spec), status="active", last_active=now)
            return await self._settle_in(session, claim, record, summary, kept)
        except BaseException:
            await asyncio.shield(self._chores.spawn(self._undo(identity, agent_id), "undo"))
            raise

    async def _may_begin_anew(self, kept: Record, summary: str | None, refused: EngineError) -> bool:
        """Whether nothing is lost by a new thread in the place of one that the engine does not have."""
        if isinstance(refused, ThreadUnknown):
            return kept.is_empty  # its process was killed before the engine wrote anything of it
        # An engine that forgets its threads: the summary tells the new one what there was.
        return summary is not None and not (await self._hub.engine.abilities()).resume

    async def _settle_in(
        self, session: Session, claim: Claim, record: Record, summary: str | None, instead: Record
    ) -> Colleague:
        """Make a session known, on the disk and here; if that fails, `instead` is what is known of it."""
        colleague = Colleague(
            session,
            record,
            keeper=lambda snapshot: Keeper(claim, snapshot, self._chores),
            budget=self._budget,
            now=self._records.now,
            summary=summary,
        )
        session.observer = colleague
        putting = self._chores.spawn(claim.put(colleague.record), "first record")
        try:
            await asyncio.shield(putting)
            self._check()
            if session.status == "closed":
                raise SessionClosed(f"Session {session.agent_id} ended as it began")
        except BaseException:
            await asyncio.shield(self._chores.spawn(_take_back(colleague, claim, putting, instead), "undo"))
            raise
        self._welcome(colleague)
        return colleague

    async def _undo(self, identity: str, agent_id: str) -> None:
        """Neither the session nor its name stays."""
        session = self._hub.by_identity(identity)
        if session is not None and session.agent_id == agent_id:
            await session.close()
            await self._hub.wait_gone(agent_id)
        await self._names.drop(identity, agent_id)


async def _take_back(
    colleague: Colleague, claim: Claim, putting: asyncio.Task[None], instead: Record
) -> None:
    await asyncio.wait((putting,))
    await colleague.keeper.stop()
    if await claim.get(colleague.agent_id) is not None:
        await claim.put(instead)
