"""All sessions of one process: owners, limits, lookup, orderly shutdown.

Front ends get a `Hub` and nothing below it. Every call carries a principal (a connection, a bearer
token, the local user); a principal sees only its own sessions and their questions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from laneway.base.errors import LimitReached, QuestionGone, SessionClosed, SessionUnknown
from laneway.base.ids import new_id
from laneway.core.audience import Reader
from laneway.core.engines import NO_OTHERS, Engines, MakeEngine
from laneway.core.model import Answer
from laneway.core.ports import Clock, Engine, Thread, ThreadSpec, TurnSpec
from laneway.core.session import Compose, Session, Timing, no_context
from laneway.core.tools import ToolBox

log = logging.getLogger(__name__)

MAX_RELEASES = 8
"""Threads given back at once, of one engine. Codex does one after the other, and refuses calls beyond its
queue of 128."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of one process."""

    sessions: int = 500
    """Live at once. Each costs Codex about 4 MB, us some kB."""


Equip: TypeAlias = Callable[[str, ThreadSpec], ThreadSpec]
"""From the id of a session and its thread's spec to the spec with what we add to it (`extras`)."""


def unequipped(agent_id: str, spec: ThreadSpec) -> ThreadSpec:
    return spec


class _Owner(NamedTuple):
    """Who opens a session, under which ids, and who reads its events."""

    principal: str
    identity: str | None
    agent_id: str | None
    readers: Sequence[Reader]


class Hub:
    """`async with Hub(engine, clock) as hub:` — at the end every session is closed, then the engines."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        others: Mapping[str, MakeEngine] = NO_OTHERS,
        limits: Limits = Limits(),  # noqa: B008  frozen
        timing: Timing = Timing(),  # noqa: B008  frozen
        tools: ToolBox | None = None,
        compose: Compose = no_context,
        equip: Equip = unequipped,
        revive: bool = True,
        shutdown_s: float = 10.0,
    ) -> None:
        """`engine` runs the sessions that ask for none; `others` are further ones by their keys."""
        self.engines = Engines(engine, others)
        self._clock = clock
        self.limits = limits
        self._timing = timing
        self._tools = tools
        self._compose = compose
        self._equip = equip
        self._revive = revive
        self._shutdown_s = shutdown_s
        self._sessions: dict[str, Session] = {}
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._reserved = 0
        self._is_shut = False
        self._release_slots: dict[Engine, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(MAX_RELEASES)
        )
        self._resume_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By thread id, while a caller resumes that thread."""

    async def __aenter__(self) -> Hub:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    @property
    def engine(self) -> Engine:
        """The default engine."""
        return self.engines.default

    # ── sessions ───────────────────────────────────────────────────────────

    async def start(
        self,
        principal: str,
        spec: ThreadSpec,
        *,
        identity: str | None = None,
        agent_id: str | None = None,
        readers: Sequence[Reader] = (),
    ) -> Session:
        """Start a thread and a session for it. The readers get every event from the first on."""
        owner = _Owner(principal, identity, agent_id, readers)
        tools = (*spec.tools, *(self._tools or ()))
        spec = msgspec.structs.replace(spec, had_tools=tuple(tool.name for tool in tools))
        return await self._open(
            owner, spec, lambda host: host.engine.start(host.spec, host), has_history=False
        )

    async def resume(
        self,
        principal: str,
        thread_id: str,
        spec: ThreadSpec,
        *,
        identity: str | None = None,
        agent_id: str | None = None,
        readers: Sequence[Reader] = (),
        has_history: bool = True,
    ) -> Session:
        """Open a session for an existing thread. One that is open already is returned as it is.

        `has_history` is false for a thread that, as far as is known, has no turns yet.
        """
        # Two sessions on one thread could run two turns at once: of many callers, the first resumes it.
        resume_lock = self._resume_locks.setdefault(thread_id, asyncio.Lock())
        async with resume_lock:
            open_session = self.by_thread(thread_id)
            if open_session is not None and open_session.is_closing:
                await self.wait_gone(open_session.agent_id)  # then the thread is free, whoever owned it
                open_session = self.by_thread(thread_id)
            if open_session is not None:
                return self.get(principal, open_session.agent_id)  # its owner may simply use it
            owner = _Owner(principal, identity, agent_id, readers)
            return await self._open(
                owner,
                spec,
                lambda host: host.engine.resume(thread_id, host.spec, host),
                has_history=has_history,
            )

    async def fork(
        self,
        principal: str,
        thread_id: str,
        spec: ThreadSpec,
        *,
        identity: str | None = None,
        agent_id: str | None = None,
        readers: Sequence[Reader] = (),
    ) -> Session:
        """Open a session for a copy of a thread."""
        owner = _Owner(principal, identity, agent_id, readers)
        return await self._open(owner, spec, lambda host: host.engine.fork(thread_id, host.spec, host))

    def get(self, principal: str, agent_id: str) -> Session:
        session = self._sessions.get(agent_id)
        if session is None or session.principal != principal:
            raise SessionUnknown(agent_id)
        return session

    def sessions(self, principal: str) -> list[Session]:
        return [session for session in self._sessions.values() if session.principal == principal]

    def all_sessions(self) -> list[Session]:
        """Every session, whatever its principal: for the local user, whose sessions they all are."""
        return list(self._sessions.values())

    def by_agent(self, agent_id: str) -> Session | None:
        """The session with this id, whatever its principal."""
        return self._sessions.get(agent_id)

    def by_thread(self, thread_id: str) -> Session | None:
        return next((s for s in self._sessions.values() if s.thread_id == thread_id), None)

    async def answer(self, principal: str, question_id: str, answer: Answer) -> None:
        """Decide a question of one of the principal's sessions."""
        for session in self.sessions(principal):
            if any(question.question_id == question_id for question in session.questions):
                await session.answer(question_id, answer)
                return
        raise QuestionGone(question_id)

    async def _open(
        self,
        owner: _Owner,
        spec: ThreadSpec,
        begin: Callable[[Session], Awaitable[Thread]],
        *,
        has_history: bool = True,
    ) -> Session:
        agent_id = owner.agent_id or new_id("agent")
        engine = self.engines.get(spec.backend)
        # Counted before anything is awaited: of many starts at once, no more than the limit go on.
        self._reserve()
        try:
            if self._tools is not None:
                spec = msgspec.structs.replace(spec, tools=(*spec.tools, *self._tools))
            spec = self._equip(agent_id, spec)
            session = Session(
                agent_id=agent_id,
                principal=owner.principal,
                identity=owner.identity,
                spec=spec,
                engine=engine,
                clock=self._clock,
                compose=self._compose,
                timing=self._timing,
                revive=self._revive,
                has_history=has_history,
                release_slots=self._release_slots[engine],
            )
            for reader in owner.readers:
                session.attach(reader)
            session.bind(await begin(session))
            self._refuse_if_shut()  # the shutdown may have begun meanwhile
        finally:
            self._reserved -= 1
        self._sessions[agent_id] = session
        task = asyncio.get_running_loop().create_task(session.run(), name=f"session {agent_id}")
        self._runs[agent_id] = task
        task.add_done_callback(lambda done: self._forget(session, done))
        return session

    def _refuse_if_shut(self) -> None:
        if self._is_shut:
            raise SessionClosed("Laneway is shutting down")

    def _reserve(self) -> None:
        self._refuse_if_shut()
        if len(self._sessions) + self._reserved >= self.limits.sessions:
            raise LimitReached("sessions", self.limits.sessions)
        self._reserved += 1

    def _forget(self, session: Session, task: asyncio.Task[None]) -> None:
        self._sessions.pop(session.agent_id, None)
        self._runs.pop(session.agent_id, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("session %s ended by an error", session.agent_id, exc_info=task.exception())

    # ── the end ────────────────────────────────────────────────────────────

    async def wait_gone(self, agent_id: str) -> None:
        """Wait until a closed session has ended and no longer counts towards the limit."""
        task = self._runs.get(agent_id)
        if task is not None:
            await asyncio.wait((task,))

    def abort(self, agent_id: str) -> None:
        """End a session that takes too long to close. Every caller that waits for it gets an answer."""
        task = self._runs.get(agent_id)
        if task is not None:
            task.cancel()

    def begin_shutdown(self) -> None:
        """The engines end next: no session opens any more, and closing ones need not release their thread."""
        self._is_shut = True
        for session in self._sessions.values():
            session.skip_release()

    async def shutdown(self, last: TurnSpec | None = None) -> None:
        """Close all sessions concurrently under one deadline, then the engines with all their threads.

        No session opens from now on.
        """
        self.begin_shutdown()
        runs = list(self._runs.values())
        closes = [asyncio.ensure_future(session.close(last)) for session in self._sessions.values()]
        if runs:
            _, late = await asyncio.wait(runs, timeout=self._shutdown_s)
            for task in late:
                task.cancel()
        await asyncio.gather(*runs, *closes, return_exceptions=True)
        await self.engines.aclose()
