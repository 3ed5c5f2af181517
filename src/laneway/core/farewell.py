"""The end of one colleague: cancel, perhaps a summary, the last record, and the name is free.

Works on what it is handed and answers with what it came to. Who is closed, and whether all
are, is `Colleagues`' business.
"""

from __future__ import annotations

import msgspec

from laneway.base.errors import IdentityHeld
from laneway.core.colleague import Colleague, Ended
from laneway.core.hub import Hub
from laneway.core.identities import Identities
from laneway.core.judgement import Why, final_status, summary_text, wants_summary
from laneway.core.ports import Clock, TextPart, TurnSpec
from laneway.core.records import Record, Records

LATE_S = 1.0
"""For Codex to stop a summary that took too long; then the session ends all the same."""

SUMMARY_PROMPT = (
    "This session is about to be closed and may be resumed later, perhaps without its history. "
    "Sum up in Markdown, in at most 300 words: what was asked for, what was done (with paths), "
    "what was decided and why, what is left to do. Run no commands, change nothing, ask nothing."
)


class Farewell:
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

    async def to_kept(self, record: Record) -> Ended:
        """A session that does not run here: if nobody else runs it, it is marked as closed."""
        ended = Ended(
            agent_id=record.agent_id,
            identity=record.identity,
            thread_id=record.thread_id,
            was=record.status,
            status="closed",
        )
        if record.status == "closed":
            return ended
        try:
            async with self._names.holding(record.identity) as claim:
                kept = await claim.get(record.agent_id)
                if kept is not None:
                    await claim.put(msgspec.structs.replace(kept, status="closed", state="idle"))
                return ended
        except IdentityHeld:
            if record.status == "active":
                raise  # another process runs it
            return msgspec.structs.replace(ended, status=record.status)

    async def say(self, colleague: Colleague, why: Why) -> Ended:
        """When this returns, its name is free and its record says how it ended."""
        session, was = colleague.session, colleague.state
        wanted = wants_summary(
            why,
            is_busy=was == "busy",
            turns=session.turns,
            is_on=self._summaries,
            can=colleague.is_kept and colleague.has_tokens_left,
        )
        last_words = TurnSpec(parts=(TextPart(SUMMARY_PROMPT),)) if wanted else None
        summary = await self._end(colleague, why, last_words)
        status = final_status(why, wanted=wanted, summary=summary)
        last = msgspec.structs.replace(
            colleague.record, status=status, state="idle", last_active=self._records.now()
        )
        await colleague.keeper.finish(last, summary)
        await self._names.drop(colleague.identity, colleague.agent_id)
        return Ended(
            agent_id=colleague.agent_id,
            identity=colleague.identity,
            thread_id=colleague.thread_id,
            was="busy" if was == "busy" else "idle",
            status=status,
            summary=summary,
        )

    async def _end(self, colleague: Colleague, why: Why, last: TurnSpec | None) -> str | None:
        session = colleague.session
        # One limit for stopping what runs and for the summary; at a shutdown it is everybody's.
        limit_s = self.summary_s + LATE_S
        stop_clock = self._clock.after(limit_s, lambda: self._hub.abort(session.agent_id))
        try:
            result = await session.close(last, self.summary_s, release=why != "shutdown")
            await self._hub.wait_gone(session.agent_id)
        finally:
            stop_clock()
        return summary_text(result)
