"""Closes one named session: cancels its turns, asks for a summary, writes the last record, frees its name.

`NamedSessions` decides which sessions are closed, and when.
"""

from __future__ import annotations

import msgspec

from laneway.base.errors import IdentityHeld
from laneway.core.hub import Hub
from laneway.core.named.identities import Identities
from laneway.core.named.records import Record, Records
from laneway.core.named.rules import Why, final_status, summary_text, wants_summary
from laneway.core.named.session import ClosedSession, NamedSession
from laneway.core.ports import Clock, TextPart, TurnSpec

LATE_S = 1.0
"""For Codex to stop a summary that took too long; after that the session ends anyway."""

SUMMARY_PROMPT = (
    "This session is about to be closed and may be resumed later, perhaps without its history. "
    "Sum up in Markdown, in at most 300 words: what was asked for, what was done (with paths), "
    "what was decided and why, what is left to do. Run no commands, change nothing, ask nothing."
)


class SessionCloser:
    """Ends sessions, live ones and those of which only a record is left."""

    def __init__(
        self,
        hub: Hub,
        records: Records,
        clock: Clock,
        names: Identities,
        *,
        summaries: bool,
        summary_s: float,
    ) -> None:
        self.summary_s = summary_s
        self._hub = hub
        self._records = records
        self._clock = clock
        self._names = names
        self._summaries = summaries

    async def close_record(self, record: Record) -> ClosedSession:
        """Mark a session as closed that this process does not run, unless another process runs it."""
        closed = ClosedSession(
            agent_id=record.agent_id,
            identity=record.identity,
            thread_id=record.thread_id,
            was=record.status,
            status="closed",
        )
        if record.status == "closed":
            return closed
        try:
            async with self._names.holding(record.identity) as claim:
                stored = await claim.get(record.agent_id)
                if stored is not None:
                    await claim.put(msgspec.structs.replace(stored, status="closed", state="idle"))
                return closed
        except IdentityHeld:
            if record.status == "active":
                raise  # another process runs it
            return msgspec.structs.replace(closed, status=record.status)

    async def close(self, named: NamedSession, why: Why) -> ClosedSession:
        """Close a live session. On return its name is free and its record says how it ended."""
        session, was = named.session, named.state
        asks_summary = wants_summary(
            why,
            is_busy=was == "busy",
            turns=session.turns,
            is_on=self._summaries,
            can=named.is_resumable and named.has_tokens_left,
        )
        last_turn = TurnSpec(parts=(TextPart(SUMMARY_PROMPT),)) if asks_summary else None
        summary = await self._end(named, why, last_turn)
        status = final_status(why, is_summary_wanted=asks_summary, summary=summary)
        last = msgspec.structs.replace(
            named.record, status=status, state="idle", last_active=self._records.now()
        )
        await named.writer.finish(last, summary)
        await self._names.drop(named.identity, named.agent_id)
        return ClosedSession(
            agent_id=named.agent_id,
            identity=named.identity,
            thread_id=named.thread_id,
            was="busy" if was == "busy" else "idle",
            status=status,
            summary=summary,
        )

    async def _end(self, named: NamedSession, why: Why, last: TurnSpec | None) -> str | None:
        session = named.session
        # One limit for stopping the running turn and for the summary; a shutdown has one for all sessions.
        limit_s = self.summary_s + LATE_S
        stop_clock = self._clock.after(limit_s, lambda: self._hub.abort(session.agent_id))
        try:
            result = await session.close(last, self.summary_s, release=why != "shutdown")
            await self._hub.wait_gone(session.agent_id)
        finally:
            stop_clock()
        return summary_text(result)
