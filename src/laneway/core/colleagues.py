"""Sessions with a name that outlive their process: opened, resumed, listened to, closed, kept.

The service behind every door that knows identities. Joins the `Hub` (live sessions), the
`Identities` (names) and the `Records` (what is kept). No disk is waited for while somebody
waits for an answer, but for the one entry that makes a new session known.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Literal, TypeAlias

from laneway.base.errors import (
    LanewayError,
    SessionClosed,
    SessionUnknown,
    UsageError,
)
from laneway.core import roll
from laneway.core.arrivals import Arrivals
from laneway.core.audience import Reader
from laneway.core.background import Chores, Scribe
from laneway.core.colleague import Colleague, Ended
from laneway.core.farewell import Farewell
from laneway.core.hub import Hub
from laneway.core.identities import Identities, MayTake, anybody
from laneway.core.judgement import Restart, Why, matches, outcome
from laneway.core.mortality import Mortality
from laneway.core.opening import Budget, Opening
from laneway.core.ports import Clock, TextPart, TurnSpec
from laneway.core.records import AuditLine, Claim, Record, Records, latest
from laneway.core.turn import Turn, TurnResult

Moment: TypeAlias = Literal["opened", "busy", "idle", "closed"]
Listener: TypeAlias = Callable[[Colleague, Moment], None]

MAX_PROMPT_CHARS = 32_768
"""Of a prompt that is handed to the audit log: more than it looks at, and it keeps 200."""


class Colleagues:
    """`async with Colleagues(hub, records, clock, …) as colleagues:` — at the end hub and engine are shut."""

    def __init__(
        self,
        hub: Hub,
        records: Records,
        clock: Clock,
        *,
        default_identity: str = "codex",
        budget: Budget = Budget(),  # noqa: B008  frozen
        summaries: bool = True,
        persist: bool = True,
        restart: Restart = "never",
        summary_s: float = 10.0,
        may_take: MayTake = anybody,
    ) -> None:
        """`may_take` is asked before a session opens or resumes under a name, or a name is reserved."""
        self.hub = hub
        self.pending_mail: Callable[[], int] = lambda: 0
        self.listeners: list[Listener] = []
        """Told what becomes of each colleague, where it happens: they must not wait or raise."""
        self._records = records
        self._clock = clock
        self._mortality = Mortality(hub.engine, restart)
        self._chores = Chores()
        self._names = Identities(records, self._chores, may_take)
        self._scribe = Scribe(records, self._chores)
        self._live: dict[str, Colleague] = {}
        self._resuming: dict[str, asyncio.Task[Colleague]] = {}
        self._arrivals = Arrivals(
            hub,
            records,
            self._names,
            self._chores,
            default_identity=default_identity,
            budget=budget,
            persist=persist,
            check=self._check_is_open,
            welcome=self._welcome,
        )
        self._farewell = Farewell(hub, records, clock, self._names, summaries=summaries, summary_s=summary_s)
        self._end: asyncio.Task[None] | None = None
        self._since = clock.now()

    async def __aenter__(self) -> Colleagues:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    # ── beginning ──────────────────────────────────────────────────────────

    async def reserve(self, identity: str) -> None:
        """Hold a name for as long as we are here, also between its sessions (ruling 4: `--identity`)."""
        await self._names.reserve(identity)

    async def open(self, principal: str, opening: Opening, *, readers: Sequence[Reader] = ()) -> Colleague:
        """A new session under the name that was asked for, or under the next free one.

        Its entry is on the disk when this returns. If this fails, nothing stays bound.
        """
        self._check_is_open()
        self._mortality.check()
        colleague = await self._arrivals.first(principal, opening, readers)
        self.note("session_opened", colleague)
        return colleague

    async def resume(
        self,
        principal: str,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        identity: str | None = None,
        changes: Mapping[str, Any] | None = None,
        readers: Sequence[Reader] = (),
    ) -> Colleague:
        """The session with this id or thread, or the latest of this name; a live one as it is.

        `changes` are fields of its `ThreadSpec` that are to be different from now on.
        """
        found = await self._live_or_kept(agent_id, thread_id, identity)
        if isinstance(found, Record):
            self._mortality.check()
            resuming = self._resuming.get(found.agent_id)
            if resuming is None:
                resuming = self._resume_once(principal, found, changes or {}, readers)
            found = await asyncio.shield(resuming)
        if found.principal != principal:
            raise SessionUnknown(found.agent_id)
        return found

    async def _live_or_kept(
        self, agent_id: str | None, thread_id: str | None, identity: str | None
    ) -> Colleague | Record:
        """A live one that stays, else what is kept."""
        while True:
            self._check_is_open()
            live = self._pick(agent_id, thread_id, identity)
            if live is None:
                record = await self.lookup(agent_id=agent_id, thread_id=thread_id, identity=identity)
                if record.agent_id not in self._live:
                    return record
                # Somebody was quicker while we read.
            elif live.ending is None:
                return live
            else:
                await asyncio.shield(live.ending)

    def _resume_once(
        self, principal: str, record: Record, changes: Mapping[str, Any], readers: Sequence[Reader]
    ) -> asyncio.Task[Colleague]:
        """One task, however many ask: a caller that goes away takes nothing from the others."""
        agent_id = record.agent_id

        async def work() -> Colleague:
            try:
                colleague = await self._arrivals.again(principal, record, changes, readers)
            finally:
                del self._resuming[agent_id]
            self.note("session_resumed", colleague)
            return colleague

        self._resuming[agent_id] = self._chores.spawn(work(), "resume")
        return self._resuming[agent_id]

    def _welcome(self, colleague: Colleague) -> None:
        self._live[colleague.agent_id] = colleague

        def on_closed() -> None:
            self._see_off(colleague, "lost")

        colleague.on_closed = on_closed
        colleague.on_change = lambda state: self._tell(colleague, state)
        self._tell(colleague, "opened")

    def _tell(self, colleague: Colleague, moment: Moment) -> None:
        for listener in self.listeners:
            listener(colleague, moment)

    # ── being there ────────────────────────────────────────────────────────

    def find(
        self,
        principal: str,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        identity: str | None = None,
    ) -> Colleague:
        """A live session of the principal's."""
        live = self._pick(agent_id, thread_id, identity)
        if live is None or live.principal != principal:
            raise SessionUnknown(agent_id or thread_id or identity or "")
        return live

    async def lookup(
        self, *, agent_id: str | None = None, thread_id: str | None = None, identity: str | None = None
    ) -> Record:
        """What is known of a session, live or kept; of several with one name, of the latest."""
        live = self._pick(agent_id, thread_id, identity)
        if live is not None:
            return live.record
        view = await self._records.view()
        found = latest(record for record in view.records if matches(record, agent_id, thread_id, identity))
        if found is None:
            raise SessionUnknown(agent_id or thread_id or identity or "")
        return found

    async def seen(self, principal: str, agent_id: str) -> Record:
        """What is known of a session that the principal may read: its own, or one that is nobody's here."""
        live = self._live.get(agent_id)
        if live is not None and live.principal != principal:
            raise SessionUnknown(agent_id)
        return await self.lookup(agent_id=agent_id)

    def live(self, principal: str | None = None) -> list[Colleague]:
        return [c for c in self._live.values() if principal in (None, c.principal)]

    async def sessions(
        self,
        principal: str,
        *,
        identity: str | None = None,
        repo_root: str | None = None,
        include_closed: bool = True,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> roll.Roll:
        """The sessions of the team, also of other processes and of those that are gone; all, or a page."""
        filters = roll.Filters(identity=identity, repo_root=repo_root, include_closed=include_closed)
        view = await self._records.view()
        return roll.page(
            view.records,
            self._live,
            principal,
            filters,
            limit=limit,
            cursor=cursor,
            problems=view.problems,
        )

    async def summary(self, agent_id: str) -> str | None:
        """What the session reported when it was last closed."""
        record = await self.lookup(agent_id=agent_id)
        return await self._records.summary(record.identity, record.thread_id) if record.thread_id else None

    def status(self) -> roll.Health:
        engine = self.hub.engine
        return roll.Health(
            child_alive=engine.is_running,
            child_ended=engine.ended,
            child_pid=engine.pid,
            team=self._records.team,
            uptime_s=self._clock.now() - self._since,
            active=len(self._live),
            limit=self.hub.limits.sessions,
            identities={
                c.identity: roll.Bound(c.agent_id, c.thread_id, c.state) for c in self._live.values()
            },
            pending_mail=self.pending_mail(),
        )

    def holder(self, identity: str) -> str | None:
        """The agent that has the name in this process, also one that is only beginning."""
        return self._names.holder(identity)

    @asynccontextmanager
    async def holding(self, identity: str) -> AsyncIterator[Claim]:
        """Act under a name that is ours or free; `IdentityHeld` if another process has it."""
        async with self._names.holding(identity) as claim:
            yield claim

    def note(self, event_type: str, colleague: Colleague | None = None, **fields: str | None) -> None:
        """A line for the audit log, written in the background."""
        who: dict[str, Any] = {"agent_id": None, "identity": None}
        if colleague is not None:
            who = {
                "agent_id": colleague.agent_id,
                "identity": colleague.identity,
                "thread_id": colleague.thread_id,
            }
        self._scribe.line(AuditLine(event_type=event_type, **{**who, **fields}))

    # ── turns ──────────────────────────────────────────────────────────────

    def say(
        self,
        colleague: Colleague,
        words: str | TurnSpec,
        *,
        source: str = "codex",
        kind: Literal["client", "mail"] = "client",
        request_id: str = "",
        timeout_s: float | None = None,
        merge: bool = True,
        events: bool = True,
    ) -> Turn:
        """Ask for a turn. `source` is what the audit log calls it."""
        if colleague.ending is not None:
            raise SessionClosed(f"Session {colleague.agent_id} is closed")
        self._check_is_open()
        self._mortality.check()
        spec = TurnSpec(parts=(TextPart(words),)) if isinstance(words, str) else words
        turn = colleague.take_turn(
            spec,
            lambda worded: colleague.session.say(
                worded, kind=kind, timeout_s=timeout_s, merge=merge, events=events
            ),
        )
        prompt = "\n".join(part.text for part in spec.parts if isinstance(part, TextPart))
        self.note(source, colleague, prompt_summary=prompt[:MAX_PROMPT_CHARS], request_id=request_id)
        if kind == "client":
            turn.on_settled(self._mortality.hear)  # a death in a mail turn was told to nobody
        turn.on_settled(lambda end: self._settled(colleague, end, request_id))
        return turn

    def _settled(self, colleague: Colleague, end: TurnResult | LanewayError, request_id: str) -> None:
        turn_id = end.turn_id or "" if isinstance(end, TurnResult) else ""
        self.note("turn_done", colleague, turn_id=turn_id, request_id=request_id, outcome=outcome(end))

    # ── the end ────────────────────────────────────────────────────────────

    async def close(
        self, principal: str, *, agent_id: str | None = None, identity: str | None = None
    ) -> Ended:
        """End a session; again is harmless. Its name is free when this returns."""
        live = self._pick(agent_id, None, identity)
        if live is None:
            return await self._farewell.to_kept(await self.lookup(agent_id=agent_id, identity=identity))
        if live.principal != principal:
            raise SessionUnknown(agent_id or identity or "")
        return await asyncio.shield(self._see_off(live, "close"))

    def _see_off(self, colleague: Colleague, why: Why) -> asyncio.Task[Ended]:
        """Close it once, however many ask for it."""
        if colleague.ending is None:
            colleague.ending = self._chores.spawn(self._end_one(colleague, why), "close")
        return colleague.ending

    async def _end_one(self, colleague: Colleague, why: Why) -> Ended:
        try:
            ended = await self._farewell.say(colleague, why)
            self.note("session_closed", colleague, outcome=ended.status)
            await self._scribe.flush()
            return ended
        finally:
            self._live.pop(colleague.agent_id, None)
            self._tell(colleague, "closed")

    async def shutdown(self) -> None:
        """Close everything within one deadline; called again meanwhile, it ends at once."""
        if self._end is None:
            self._end = asyncio.get_running_loop().create_task(self._shut_down(), name="shutdown")
        elif not self._end.done():
            self.abort()
        await asyncio.shield(self._end)

    async def _shut_down(self) -> None:
        stop_clock = self._clock.after(self._farewell.summary_s, self.abort)
        # What is known now is kept, whatever becomes of the summaries.
        await asyncio.gather(*(colleague.keeper.flush() for colleague in self._live.values()))
        endings = [self._see_off(colleague, "shutdown") for colleague in self._live.values()]
        if endings:
            await asyncio.wait(endings)
        stop_clock()
        await self.hub.shutdown()
        await self._names.release_reserved()
        await self._chores.wait()
        await self._scribe.finish()

    def abort(self) -> None:
        """No summaries any more: every session ends now."""
        for agent_id in list(self._live):
            self.hub.abort(agent_id)

    # ── rules ──────────────────────────────────────────────────────────────

    def _pick(self, agent_id: str | None, thread_id: str | None, identity: str | None) -> Colleague | None:
        if sum(given is not None for given in (agent_id, thread_id, identity)) != 1:
            raise UsageError("Name a session by one of agent_id, thread_id and identity")
        if agent_id is not None:
            return self._live.get(agent_id)
        return next(
            (c for c in self._live.values() if c.thread_id == thread_id or c.identity == identity), None
        )

    def _check_is_open(self) -> None:
        if self._end is not None:
            raise SessionClosed("Laneway is shutting down")
