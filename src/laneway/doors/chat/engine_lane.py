"""A lane on an engine: one session of a hub as `laneway.lanes.contract.Lane`, for every engine.

Opens its session with the first turn, and again after that has ended; a turn that cannot even begin is
told as one that has failed. What of the session's events is told is up to `laneway.doors.chat.engine_turns`;
the engine's commands are run by `laneway.doors.chat.engine_commands`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from laneway.base.errors import (
    LanewayError,
    QuestionGone,
    SessionClosed,
    SessionStuck,
    ThreadUnknown,
    UsageError,
)
from laneway.base.plain import code_label
from laneway.core.background import TaskSet
from laneway.core.hub import Hub
from laneway.core.model import Answer, Event, Failure, Notice, SettingsChanged, ThreadKnown
from laneway.core.ports import ImagePart, Part, TextPart, ThreadSpec, TurnSpec
from laneway.core.session import NEVER_S, Session
from laneway.core.turn import TurnResult
from laneway.doors.chat.delegation import delegation_tools
from laneway.doors.chat.engine_turns import LaneTurns, RunningTurn
from laneway.doors.chat.engine_words import failure_of
from laneway.doors.chat.lane_engines import LaneEngine, LaneKind
from laneway.lanes.contract import LaneAbilities, LaneHost, LaneTurn

if TYPE_CHECKING:
    from laneway.doors.chat.engine_commands import EngineCommands

log = logging.getLogger(__name__)

PRINCIPAL = "chat"
"""The owner of all sessions of lanes."""


class EngineLane:
    def __init__(self, kind: LaneKind, engine: LaneEngine) -> None:
        self._kind = kind
        self._engine = engine
        self._turns = LaneTurns(kind)
        self._cwd = Path()
        self._thread_id: str | None = None
        """The thread to go on with."""
        self._hub: Hub | None = None
        self._session: Session | None = None
        self._opening: asyncio.Task[Session] | None = None
        self._commands: EngineCommands | None = None
        self._kept_context = ""
        """Came with a command whose turn takes none: the next turn has it."""
        self._tasks = TaskSet()
        self._closing = asyncio.Lock()
        self._is_closed = False

    # ── what it is ─────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        return self._kind.name

    @property
    def usage(self) -> str:
        return self._kind.usage

    @property
    def description(self) -> str:
        return self._kind.description

    @property
    def abilities(self) -> LaneAbilities:
        from laneway.doors.chat.engine_commands import lane_commands  # git and diffs: not before it is asked

        offers = self._engine.offers
        return LaneAbilities(
            steers=offers.steering,
            takes_images=offers.images,
            resumes=self._kind.resumes,
            commands=lane_commands(offers),
        )

    @property
    def thread_id(self) -> str | None:
        if not self._kind.resumes:
            return None
        session = self._session
        if session is None:
            return self._thread_id
        return session.thread_id if session.has_history else None

    async def probe(self) -> str | None:
        return await self._engine.problem()

    # ── a lane's life ──────────────────────────────────────────────────────

    async def open(self, cwd: Path, host: LaneHost, *, resume: str | None = None) -> None:
        if resume is not None and not self._kind.resumes:
            raise UsageError(f"The lane {self.name} cannot go on with an earlier conversation.")
        self._cwd, self._thread_id, self._turns.host = cwd, resume, host

    async def close(self) -> None:
        async with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            running = self._turns.running
            if running is not None:
                running.is_interrupted = True
                if running.session_turn is None and running.task is not None:
                    running.task.cancel()
            if self._opening is not None:
                self._opening.cancel()
            if self._session is not None:
                self._thread_id = self.thread_id
                # Of the last session the engine ends next, and lets the thread go by that.
                await self._session.close(release=self._engine.holders > 1)
            if running is not None:
                self._turns.end(running, "interrupted")
            await self._tasks.cancel()
            self._turns.host = self._session = None
            if self._hub is not None:
                self._hub = None
                await self._engine.release()

    # ── turns ──────────────────────────────────────────────────────────────

    def begin(self, turn: LaneTurn) -> None:
        if self._turns.host is None or self._is_closed:
            raise SessionClosed(f"The lane {self.name} is not open.")
        if self._turns.running is not None:
            raise UsageError(f"The lane {self.name} is still in a turn.")
        running = self._turns.running = RunningTurn(turn)
        running.task = self._tasks.spawn(self._play(running), f"a turn of {self.name}")
        running.task.add_done_callback(lambda task: self._settle(running, task))

    async def steer(self, turn: LaneTurn) -> bool:
        running, session = self._turns.running, self._session
        if session is None or running is None or running.is_command:
            return False
        try:
            await session.steer(self._parts(turn), ticket=turn.ticket)
        except LanewayError as problem:
            log.info("words for %s were not taken: %s", self.name, problem)
            return False
        return True

    async def interrupt(self) -> None:
        running, session = self._turns.running, self._session
        if running is not None:
            running.is_interrupted = True
            if running.session_turn is None and running.task is not None:
                running.task.cancel()  # it is being opened, or a command is not in a turn of the engine
        if session is not None and (running is not None or self._turns.own_turn is not None):
            session.cancel_all()

    def answer(self, question_id: str, answer: Answer) -> None:
        if self._session is not None:
            self._tasks.spawn(_answer(self._session, question_id, answer), f"an answer for {self.name}")

    async def _play(self, running: RunningTurn) -> None:
        try:
            if running.is_command:
                await self._play_command(running)
            else:
                await self._play_prompt(running)
        except LanewayError as error:
            self._fail(running, error)

    def _settle(self, running: RunningTurn, task: asyncio.Task[None]) -> None:
        """The turn's task is over, and so is the turn."""
        if task.cancelled():
            self._turns.end(running, "interrupted")
        elif task.exception() is not None:  # a bug, which the task set logs
            self._turns.end(running, "failed", Failure(kind="other", message="Laneway made a mistake here."))

    def _fail(self, running: RunningTurn, error: LanewayError) -> None:
        failure = failure_of(error, self.name, self._kind.login)
        if not running.is_interrupted:
            self._turns.end(running, "failed", failure)
        else:
            self._turns.end(running, "interrupted", failure if isinstance(error, SessionStuck) else None)

    async def _play_prompt(self, running: RunningTurn) -> None:
        turn = running.lane_turn
        await self._ready()
        await self._check_images(turn)
        kept, self._kept_context = self._kept_context, ""
        context = "\n\n".join(filter(None, (kept, turn.context)))
        await self._run(running, TurnSpec(parts=self._parts(turn, context)))

    async def _check_images(self, turn: LaneTurn) -> None:
        """Raise `UsageError` for images that would not reach the model."""
        if not turn.images or self._commands is None:
            return
        problem = await self._commands.no_images()
        missing = next((each for each in turn.images if not os.access(each, os.R_OK)), None)
        if problem is None and missing is not None:
            problem = f"The image {code_label(str(missing))} cannot be read."
        if problem is not None:
            raise UsageError(problem)

    async def _play_command(self, running: RunningTurn) -> None:
        turn = running.lane_turn
        await self._ready()
        commands = self._commands
        assert commands is not None
        images = tuple(ImagePart(path=str(path)) for path in turn.images)
        self._kept_context = "\n\n".join(filter(None, (self._kept_context, turn.context)))

        async def run_turn(spec: TurnSpec) -> TurnResult:
            if spec.parts:
                parts = (*self._context_parts(self._kept_context), *spec.parts)
                spec, self._kept_context = msgspec.structs.replace(spec, parts=parts), ""
            return await self._run(running, spec)

        await commands.run(
            turn.command, turn.text, images, run_turn, lambda text: self._turns.say(running, text)
        )
        self._turns.end_command(running)

    async def _run(self, running: RunningTurn, spec: TurnSpec) -> TurnResult:
        """Run a turn of the session; returns once it is over."""
        session = await self._ready()
        if self._commands is not None:
            spec = self._commands.with_choices(spec)
        running.session_turn = session.say(spec, events=False, ticket=running.ticket)
        if running.is_interrupted:
            session.cancel_all()
        result = await running.session_turn.result()
        if not running.is_command or running.done is None:
            self._turns.end(running, result.status, result.failure)  # it was taken back before it began
        return result

    def _parts(self, turn: LaneTurn, context: str = "") -> tuple[Part, ...]:
        """What other lanes have done stands in front of the words, as a text of its own."""
        text = (TextPart(turn.text),) if turn.text else ()
        images = [ImagePart(path=str(path)) for path in turn.images]
        return (*self._context_parts(context or turn.context), *text, *images)

    def _context_parts(self, context: str) -> tuple[TextPart, ...]:
        return (TextPart(context),) if context else ()

    # ── the session ────────────────────────────────────────────────────────

    async def _ready(self) -> Session:
        """The session, which is opened if there is none. Cancelling the caller does not stop the opening."""
        if self._session is not None and not self._session.is_closing:
            return self._session
        if self._opening is None:
            self._opening = self._tasks.spawn(self._open_session(), f"opening {self.name}")
            self._opening.add_done_callback(lambda _: self._forget_opening())
        return await asyncio.shield(self._opening)

    def _forget_opening(self) -> None:
        self._opening = None

    async def _open_session(self) -> Session:
        from laneway.doors.chat.engine_commands import EngineCommands  # as for `abilities`

        if self._hub is None:
            self._hub = await self._engine.acquire()
        thread_id, hub = self.thread_id, self._hub
        session = None
        if thread_id is not None:
            session = await self._resumed(hub, thread_id)
        if session is None:
            session = await hub.start(PRINCIPAL, self._spec(), readers=[_LaneReader(self)])
        self._session, self._commands = session, EngineCommands(session)
        self._tell_model(session)
        return session

    def _tell_model(self, session: Session) -> None:
        """Engines that do not say it with their answers say it as they open a thread."""
        access = session.engine.offers.access
        if access is not None:
            model = access.state(session.info.native).model
            self._turns.tell(SettingsChanged(settings={"model": model}))

    async def _resumed(self, hub: Hub, thread_id: str) -> Session | None:
        """The session of an earlier thread; none if the engine does not have it any more."""
        reader = _LaneReader(self)
        try:
            session = await hub.resume(PRINCIPAL, thread_id, self._spec(), readers=[reader])
        except ThreadUnknown as problem:
            text = f"{problem}: it was deleted, or never written. /{self.name} begins a new one."
            self._turns.tell(Notice(level="warning", message=text))
            return None
        if not session.has_reader(reader):
            raise UsageError(f"Thread {thread_id} is open in another conversation here.")
        return session

    def _spec(self) -> ThreadSpec:
        kind, host = self._kind, self._turns.host
        return ThreadSpec(
            cwd=self._cwd,
            model=kind.model,
            config=kind.config,
            sandbox=kind.sandbox,
            approval_policy=kind.approval_policy,
            developer_instructions=kind.instructions,
            tools=delegation_tools(host) if kind.delegates and host is not None else (),
            question_s=NEVER_S,  # the conversation has a clock of its own
        )

    def hear(self, event: Event) -> None:
        """An event of the session, on the engine's reader."""
        if isinstance(event, ThreadKnown):
            self._thread_id = event.thread_id
        if self._commands is not None:
            self._commands.on_event(event)
        self._turns.on_event(event)


class _LaneReader:
    """Hears a session on behalf of a lane (the `Reader` port)."""

    lost = 0

    def __init__(self, lane: EngineLane) -> None:
        self._lane = lane

    def push(self, event: Event) -> None:
        self._lane.hear(event)

    def close(self) -> None:
        """The lane is told of its turns' ends by the turns themselves."""


async def _answer(session: Session, question_id: str, answer: Answer) -> None:
    try:
        await session.answer(question_id, answer)
    except QuestionGone:
        log.debug("the question %s needs no answer any more", question_id)
