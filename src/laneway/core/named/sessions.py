"""Named sessions that can be resumed after a restart: open, resume, list, say, close.

The service behind every front end that knows identities. Joins the `Hub` (live sessions), the
`Identities` (names) and the `Records` (what is stored). No caller waits for the disk, except for the
one record that makes a new session known.
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
from laneway.core.audience import Reader
from laneway.core.background import TaskSet
from laneway.core.hub import Hub
from laneway.core.named import listing
from laneway.core.named.closer import SessionCloser
from laneway.core.named.identities import Identities, MayTake, allow_all
from laneway.core.named.opener import SessionOpener
from laneway.core.named.opening import Budget, Opening
from laneway.core.named.records import AuditLine, Claim, Record, Records, latest
from laneway.core.named.restart_policy import RestartPolicies
from laneway.core.named.rules import Restart, Why, matches, outcome
from laneway.core.named.session import ClosedSession, NamedSession
from laneway.core.named.writers import AuditWriter
from laneway.core.ports import Clock, TextPart, TurnSpec
from laneway.core.turn import Turn, TurnResult

Moment: TypeAlias = Literal["opened", "busy", "idle", "closed"]
SessionListener: TypeAlias = Callable[[NamedSession, Moment], None]

MAX_PROMPT_CHARS = 32_768
"""Of a prompt that is passed to the audit log. The log redacts it and keeps 200."""


class NamedSessions:
    """`async with NamedSessions(hub, records, clock, …) as sessions:` shuts down hub and engine."""

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
        may_take: MayTake = allow_all,
    ) -> None:
        """`may_take` is asked before a session opens or resumes under a name, or a name is reserved."""
        self.hub = hub
        self.pending_mail: Callable[[], int] = lambda: 0
        self.listeners: list[SessionListener] = []
        """Called when a session opens, changes state or closes: they must not wait or raise."""
        self._records = records
        self._clock = clock
        self._restarts = RestartPolicies(hub.engines, restart)
        self._tasks = TaskSet()
        self._names = Identities(records, self._tasks, may_take)
        self._audit = AuditWriter(records, self._tasks)
        self._live: dict[str, NamedSession] = {}
        self._resuming: dict[str, asyncio.Task[NamedSession]] = {}
        self._opener = SessionOpener(
            hub,
            records,
            self._names,
            self._tasks,
            default_identity=default_identity,
            budget=budget,
            persist=persist,
            check=self._check_is_open,
            register=self._register,
        )
        self._closer = SessionCloser(
            hub, records, clock, self._names, summaries=summaries, summary_s=summary_s
        )
        self._end: asyncio.Task[None] | None = None
        self._since = clock.now()

    async def __aenter__(self) -> NamedSessions:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    # ── open and resume ────────────────────────────────────────────────────

    async def reserve(self, identity: str) -> None:
        """Claim a name for the life of this process, also between its sessions (`--identity`)."""
        await self._names.reserve(identity)

    async def open(self, principal: str, opening: Opening, *, readers: Sequence[Reader] = ()) -> NamedSession:
        """Open a new session under the requested name, or under the next free one.

        Its record is on disk when this returns. If this fails, nothing stays bound.
        """
        self._check_is_open()
        self._restarts.check(opening.spec.backend)
        named = await self._opener.open_new(principal, opening, readers)
        self.note("session_opened", named)
        return named

    async def resume(
        self,
        principal: str,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        identity: str | None = None,
        changes: Mapping[str, Any] | None = None,
        readers: Sequence[Reader] = (),
    ) -> NamedSession:
        """Resume the session with this id or thread, or the latest of this name; a live one stays as it is.

        `changes` are fields of its `ThreadSpec` with new values.
        """
        named = await self._live_or_recorded(agent_id, thread_id, identity)
        if isinstance(named, Record):
            self._restarts.check(named.backend)
            resuming = self._resuming.get(named.agent_id)
            if resuming is None:
                resuming = self._resume_once(principal, named, changes or {}, readers)
            named = await asyncio.shield(resuming)
        if named.principal != principal:
            raise SessionUnknown(named.agent_id)
        return named

    async def _live_or_recorded(
        self, agent_id: str | None, thread_id: str | None, identity: str | None
    ) -> NamedSession | Record:
        """A live session that is not being closed, else the record of one that can be resumed."""
        while True:
            self._check_is_open()
            live = self._pick(agent_id, thread_id, identity)
            if live is None:
                record = await self.lookup(agent_id=agent_id, thread_id=thread_id, identity=identity)
                if record.agent_id not in self._live:
                    return record
                # Another caller resumed it while we read.
            elif live.ending is None:
                return live
            else:
                await asyncio.shield(live.ending)

    def _resume_once(
        self, principal: str, record: Record, changes: Mapping[str, Any], readers: Sequence[Reader]
    ) -> asyncio.Task[NamedSession]:
        """One task, however many callers: one that is cancelled does not cancel it for the others."""
        agent_id = record.agent_id

        async def work() -> NamedSession:
            try:
                named = await self._opener.reopen(principal, record, changes, readers)
            finally:
                del self._resuming[agent_id]
            self.note("session_resumed", named)
            return named

        self._resuming[agent_id] = self._tasks.spawn(work(), "resume")
        return self._resuming[agent_id]

    def _register(self, named: NamedSession) -> None:
        self._live[named.agent_id] = named

        def on_closed() -> None:
            self._close_once(named, "lost")

        named.on_closed = on_closed
        named.on_change = lambda state: self._notify(named, state)
        self._notify(named, "opened")

    def _notify(self, named: NamedSession, moment: Moment) -> None:
        for listener in self.listeners:
            listener(named, moment)

    # ── lookup ─────────────────────────────────────────────────────────────

    def find(
        self,
        principal: str,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        identity: str | None = None,
    ) -> NamedSession:
        """A live session of this principal."""
        live = self._pick(agent_id, thread_id, identity)
        if live is None or live.principal != principal:
            raise SessionUnknown(agent_id or thread_id or identity or "")
        return live

    async def lookup(
        self, *, agent_id: str | None = None, thread_id: str | None = None, identity: str | None = None
    ) -> Record:
        """The record of a session, live or stored; of several with one name, the latest."""
        live = self._pick(agent_id, thread_id, identity)
        if live is not None:
            return live.record
        view = await self._records.view()
        matching = (record for record in view.records if matches(record, agent_id, thread_id, identity))
        record = latest(matching)
        if record is None:
            raise SessionUnknown(agent_id or thread_id or identity or "")
        return record

    async def seen(self, principal: str, agent_id: str) -> Record:
        """The record of a session that the principal may read: its own, or one that is not live here."""
        live = self._live.get(agent_id)
        if live is not None and live.principal != principal:
            raise SessionUnknown(agent_id)
        return await self.lookup(agent_id=agent_id)

    def live(self, principal: str | None = None) -> list[NamedSession]:
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
    ) -> listing.SessionPage:
        """The sessions of the team, also of other and of ended processes; all, or one page."""
        filters = listing.Filters(identity=identity, repo_root=repo_root, include_closed=include_closed)
        view = await self._records.view()
        return listing.page(
            view.records,
            self._live,
            principal,
            filters,
            limit=limit,
            cursor=cursor,
            problems=view.problems,
        )

    async def summary(self, agent_id: str) -> str | None:
        """The summary that the session wrote when it was last closed."""
        record = await self.lookup(agent_id=agent_id)
        return await self._records.summary(record.identity, record.thread_id) if record.thread_id else None

    def status(self) -> listing.Health:
        engine = self.hub.engine
        return listing.Health(
            child_alive=engine.is_running,
            child_ended=engine.ended,
            child_pid=engine.pid,
            team=self._records.team,
            uptime_s=self._clock.now() - self._since,
            active=len(self._live),
            limit=self.hub.limits.sessions,
            identities={
                c.identity: listing.BoundIdentity(c.agent_id, c.thread_id, c.state)
                for c in self._live.values()
            },
            pending_mail=self.pending_mail(),
            engines=tuple(
                listing.EngineHealth(
                    other.backend,
                    other.is_running,
                    other.ended,
                    sum(named.session.engine is other for named in self._live.values()),
                )
                for other in self.hub.engines.in_use
                if other is not engine
            ),
        )

    def holder(self, identity: str) -> str | None:
        """The agent that has the name in this process, including one that is still opening."""
        return self._names.holder(identity)

    @asynccontextmanager
    async def holding(self, identity: str) -> AsyncIterator[Claim]:
        """Claim a name that is ours or free for a block; `IdentityHeld` if another process has it."""
        async with self._names.holding(identity) as claim:
            yield claim

    def note(self, event_type: str, named: NamedSession | None = None, **fields: str | None) -> None:
        """Add a line to the audit log, written in the background."""
        subject: dict[str, Any] = {"agent_id": None, "identity": None}
        if named is not None:
            subject = {
                "agent_id": named.agent_id,
                "identity": named.identity,
                "thread_id": named.thread_id,
            }
        self._audit.line(AuditLine(event_type=event_type, **{**subject, **fields}))

    # ── turns ──────────────────────────────────────────────────────────────

    def say(
        self,
        named: NamedSession,
        words: str | TurnSpec,
        *,
        source: str = "codex",
        kind: Literal["client", "mail"] = "client",
        request_id: str = "",
        timeout_s: float | None = None,
        merge: bool = True,
        events: bool = True,
    ) -> Turn:
        """Queue a turn. `source` is its event type in the audit log."""
        if named.ending is not None:
            raise SessionClosed(f"Session {named.agent_id} is closed")
        self._check_is_open()
        restart = self._restarts.of(named.session.engine)
        restart.check()
        spec = TurnSpec(parts=(TextPart(words),)) if isinstance(words, str) else words
        turn = named.take_turn(
            spec,
            lambda turn_spec: named.session.say(
                turn_spec, kind=kind, timeout_s=timeout_s, merge=merge, events=events
            ),
        )
        prompt = "\n".join(part.text for part in spec.parts if isinstance(part, TextPart))
        self.note(source, named, prompt_summary=prompt[:MAX_PROMPT_CHARS], request_id=request_id)
        if kind == "client":
            # A mail turn has no caller who would be told of a death.
            turn.on_settled(restart.hear)
        turn.on_settled(lambda end: self._settled(named, end, request_id))
        return turn

    def _settled(self, named: NamedSession, end: TurnResult | LanewayError, request_id: str) -> None:
        turn_id = end.turn_id or "" if isinstance(end, TurnResult) else ""
        self.note("turn_done", named, turn_id=turn_id, request_id=request_id, outcome=outcome(end))

    # ── close ──────────────────────────────────────────────────────────────

    async def close(
        self, principal: str, *, agent_id: str | None = None, identity: str | None = None
    ) -> ClosedSession:
        """Close a session; safe to call again. Its name is free when this returns."""
        live = self._pick(agent_id, None, identity)
        if live is None:
            return await self._closer.close_record(await self.lookup(agent_id=agent_id, identity=identity))
        if live.principal != principal:
            raise SessionUnknown(agent_id or identity or "")
        return await asyncio.shield(self._close_once(live, "close"))

    def _close_once(self, named: NamedSession, why: Why) -> asyncio.Task[ClosedSession]:
        """Close it once, however many callers ask for it."""
        if named.ending is None:
            named.ending = self._tasks.spawn(self._end_one(named, why), "close")
        return named.ending

    async def _end_one(self, named: NamedSession, why: Why) -> ClosedSession:
        try:
            closed = await self._closer.close(named, why)
            self.note("session_closed", named, outcome=closed.status)
            await self._audit.flush()
            return closed
        finally:
            self._live.pop(named.agent_id, None)
            self._notify(named, "closed")

    async def shutdown(self) -> None:
        """Close everything within one deadline; a second call meanwhile ends it without summaries."""
        if self._end is None:
            self._end = asyncio.get_running_loop().create_task(self._shut_down(), name="shutdown")
        elif not self._end.done():
            self.abort()
        await asyncio.shield(self._end)

    async def _shut_down(self) -> None:
        stop_clock = self._clock.after(self._closer.summary_s, self.abort)
        # Records are written first, whatever becomes of the summaries.
        await asyncio.gather(*(named.writer.flush() for named in self._live.values()))
        endings = [self._close_once(named, "shutdown") for named in self._live.values()]
        if endings:
            await asyncio.wait(endings)
        stop_clock()
        await self.hub.shutdown()
        await self._names.release_reserved()
        await self._tasks.wait()
        await self._audit.finish()

    def abort(self) -> None:
        """End every session now, without summaries."""
        for agent_id in list(self._live):
            self.hub.abort(agent_id)

    # ── rules ──────────────────────────────────────────────────────────────

    def _pick(self, agent_id: str | None, thread_id: str | None, identity: str | None) -> NamedSession | None:
        if sum(selector is not None for selector in (agent_id, thread_id, identity)) != 1:
            raise UsageError("Name a session by one of agent_id, thread_id and identity")
        if agent_id is not None:
            return self._live.get(agent_id)
        return next(
            (c for c in self._live.values() if c.thread_id == thread_id or c.identity == identity), None
        )

    def _check_is_open(self) -> None:
        if self._end is not None:
            raise SessionClosed("Laneway is shutting down")
