"""A fake engine that a test drives by hand: it does nothing by itself and everything on demand.

Implements the engine ports of `laneway.core`, for behaviour that a healthy Codex does not show: turns
that never end, refusals, a death at a chosen instant.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

from laneway.base.engines import BACKENDS, CODEX
from laneway.base.errors import EngineError, EngineLost, EngineRefused, QuestionGone, ThreadUnknown
from laneway.core.abilities import check_fork, check_steer, check_turn
from laneway.core.model import (
    Accepted,
    Answer,
    Asked,
    Choice,
    EngineGone,
    Event,
    Failure,
    Question,
    Status,
    Text,
    TurnDone,
    TurnStarted,
)
from laneway.core.models import Model
from laneway.core.offers import Offers
from laneway.core.ports import (
    Abilities,
    Host,
    Page,
    Part,
    TextPart,
    ThreadInfo,
    ThreadList,
    ThreadSpec,
    TurnSpec,
)

ALL_OFFERS = Offers(
    steering=True,
    images=True,
    forks=True,
    live_output=True,
    exit_codes=True,
    schemas=True,
    reviews=True,
    compaction=True,
    codex_config=True,
    sandboxes=("read-only", "workspace-write", "danger-full-access"),
    approvals=("untrusted", "on-request", "never"),
)
"""What this engine can do itself, without further ports."""


YES_OR_NO = (
    Choice(choice_id="accept", label="Yes", grants="once"),
    Choice(choice_id="decline", label="No", grants="nothing"),
)


class HandThread:
    """One thread. `started`, `interrupted` and `answers` record the calls that it got."""

    def __init__(self, thread_id: str, host: Host, *, is_obedient: bool = True) -> None:
        self.host = host
        self.engine_name = CODEX
        self.offers = ALL_OFFERS
        self.is_obedient = is_obedient
        """Whether an interrupt ends the turn, as a healthy engine does."""
        self.started: list[tuple[str, TurnSpec]] = []
        self.steered: list[tuple[Part, ...]] = []
        self.steer_tickets: list[str] = []
        self.records = True
        """Whether an input is recorded as soon as it comes; else the test calls `accept`."""
        self.interrupted: list[str] = []
        self.ignores_interrupt = False
        """Whether the next interrupt is refused as too early, as Codex does for a turn only announced."""
        self.answers: dict[str, Answer] = {}
        self.open_questions: set[str] = set()
        self.refuse_with: EngineError | None = None
        self.hold_starts: asyncio.Event | None = None
        self.replies: dict[str, str] = {}
        """Prompts that are answered at once, with their answers."""
        self.is_released = False
        self.turn_id: str | None = None
        self._info = ThreadInfo(thread_id=thread_id)
        self._numbers = itertools.count(1)

    @property
    def info(self) -> ThreadInfo:
        return self._info

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        self.started.append((ticket, spec))
        check_turn(self.engine_name, self.offers, spec)
        if self.hold_starts is not None:
            await self.hold_starts.wait()
        if self.refuse_with is not None:
            raise self.refuse_with
        self.turn_id = f"{self._info.thread_id}/{next(self._numbers)}"
        self.host.on_event(TurnStarted(turn_id=self.turn_id, ticket=ticket))
        if self.records:
            self.accept(ticket)
        turn_id = self.turn_id
        for part in spec.parts:
            if isinstance(part, TextPart) and part.text in self.replies:
                self.end(text=self.replies[part.text])
        return turn_id

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None:
        check_steer(self.engine_name, self.offers)
        self.steered.append(parts)
        self.steer_tickets.append(ticket)
        if self.records:
            self.accept(ticket)

    async def interrupt(self, turn_id: str) -> None:
        self.interrupted.append(turn_id)
        if self.ignores_interrupt:
            self.ignores_interrupt = False
            raise EngineRefused("turn/interrupt", -32600, "expected another active turn id")
        if self.is_obedient and turn_id == self.turn_id:
            self.end("interrupted")

    def answer(self, question_id: str, answer: Answer) -> None:
        if question_id not in self.open_questions:
            raise QuestionGone(question_id)
        self.open_questions.discard(question_id)
        self.answers[question_id] = answer

    async def history(self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False) -> Page:
        return Page((), None)

    async def release(self) -> None:
        self.is_released = True

    # ── called by the test ─────────────────────────────────────────────────

    def say(self, text: str, item_id: str = "item") -> None:
        self.host.on_event(Text(turn_id=self.turn_id or "", item_id=item_id, text=text))

    def accept(self, ticket: str | None) -> None:
        """Report that an input is recorded; an older engine does not name its ticket."""
        self.host.on_event(Accepted(turn_id=self.turn_id or "", client_id=ticket))

    def ask(self, question_id: str, *, offers_stop: bool = False, **fields: Any) -> None:
        """Ask a question: by default for a command, with a yes and a no; `fields` are those of `Question`."""
        stop = (Choice(choice_id="cancel", label="No, and stop", grants="stop"),) if offers_stop else ()
        question = Question(
            **{
                "kind": "command",
                "message": "May I?",
                "choices": (*YES_OR_NO, *stop),
                "engine": self.engine_name,
                "turn_id": self.turn_id,
                "item_id": None,
                **fields,
            },
            question_id=question_id,
            thread_id=self._info.thread_id,
        )
        self.open_questions.add(question_id)
        self.host.on_event(Asked(question=question))

    def end(self, status: Status = "completed", text: str = "", failure: Failure | None = None) -> None:
        turn_id, self.turn_id = self.turn_id, None
        assert turn_id is not None, "no turn is running"
        self.host.on_event(TurnDone(turn_id=turn_id, status=status, text=text, failure=failure))

    def emit(self, event: Event) -> None:
        self.host.on_event(event)

    def die(self, how: str = "killed by SIGKILL") -> None:
        """End as with the death of its process; where it has one of its own, no other thread hears of it."""
        self.refuse_with = EngineLost(how, engine=self.engine_name)
        if self.turn_id is not None:
            self.end("failed", failure=Failure(kind="engine_lost", message=str(self.refuse_with)))
        self.host.on_event(EngineGone(how=how))


class HandEngine:
    """Threads by id; `die` ends them all as the death of a process would."""

    def __init__(
        self, *, is_obedient: bool = True, backend: str = "codex", shares_process: bool = True
    ) -> None:
        self.backend = backend
        self.name = BACKENDS[backend]
        self.shares_process = shares_process
        self.threads: dict[str, HandThread] = {}
        self.resumed: list[tuple[str, ThreadSpec]] = []
        self.is_obedient = is_obedient
        self.is_closed = False
        self.kind: type[HandThread] = HandThread
        """The class of its threads."""
        self.hold_starts: asyncio.Event | None = None
        self.held = 0
        """Starts and resumes that wait for `hold_starts`."""
        self.refuse_with: EngineError | None = None
        """The error that every start and resume raises."""
        self.specs: list[ThreadSpec] = []
        self.unknown: set[str] = set()
        """Threads that it has not written to disk, or whose records are lost."""
        self.renews = True
        self.is_running = False
        self.ended: str | None = None
        self.ended_stderr = ""
        self.pid: int | None = None
        self.offers = ALL_OFFERS
        self._numbers = itertools.count(1)

    async def abilities(self) -> Abilities:
        return Abilities(version="0.0.0")

    async def start(self, spec: ThreadSpec, host: Host) -> HandThread:
        await self._wait_held()
        self._begin()
        self.specs.append(spec)
        return self._add(f"thread-{next(self._numbers)}", host)

    async def resume(self, thread_id: str, spec: ThreadSpec, host: Host) -> HandThread:
        await self._wait_held()
        self._begin()
        if thread_id in self.unknown:
            raise ThreadUnknown(thread_id, engine=self.name)
        self.resumed.append((thread_id, spec))
        return self._add(thread_id, host)

    async def fork(self, thread_id: str, spec: ThreadSpec, host: Host) -> HandThread:
        check_fork(self.name, self.offers)
        self._begin()
        return self._add(f"{thread_id}-fork", host)

    async def read(self, thread_id: str) -> ThreadInfo:
        if thread_id not in self.threads:
            raise ThreadUnknown(thread_id, engine=self.name)
        return self.threads[thread_id].info

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        return await self.threads[thread_id].history(older, limit, oldest_first=oldest_first)

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        return ThreadList(tuple(thread.info for thread in self.threads.values()), None)

    async def models(self) -> tuple[Model, ...]:
        return ()

    async def aclose(self) -> None:
        self.is_closed = True
        self.is_running = False

    def renew(self) -> None:
        self.ended = None

    def die(self, how: str = "killed by SIGKILL") -> None:
        self.is_running, self.ended = False, how
        for thread in self.threads.values():
            thread.die(how)

    async def _wait_held(self) -> None:
        if self.hold_starts is not None:
            self.held += 1
            try:
                await self.hold_starts.wait()
            finally:
                self.held -= 1

    def _begin(self) -> None:
        if self.ended is not None and not self.renews:
            raise EngineLost(self.ended, engine=self.name)
        if self.refuse_with is not None:
            raise self.refuse_with
        self.is_running, self.ended = True, None

    def _add(self, thread_id: str, host: Host) -> HandThread:
        thread = self.kind(thread_id, host, is_obedient=self.is_obedient)
        thread.engine_name, thread.offers = self.name, self.offers
        self.threads[thread_id] = thread
        return thread
