"""Scripted lanes for tests of conversations and of what shows them: a test drives every turn by hand.

`ScriptedLanes` is a `LaneFactory`. A lane's turns wait until the test says what happens in them
(`await lanes.lane("codex").begun()` gives the turn), or follow a script of their own:

    lanes = ScriptedLanes(play=echo)          # every turn repeats its words and ends
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from laneway.core.model import (
    Accepted,
    Activity,
    ActivityStatus,
    Answer,
    Asked,
    Choice,
    Diff,
    EngineGone,
    Event,
    Failure,
    Field,
    FieldOption,
    Output,
    Plan,
    PlanStep,
    Question,
    Status,
    Text,
    Thought,
    Tokens,
    TurnDone,
    TurnStarted,
    Usage,
    Withdrawn,
)
from laneway.lanes.contract import Lane, LaneAbilities, LaneHost, LaneTurn

ALL_ABILITIES = LaneAbilities(steers=True, takes_images=True, resumes=True)
DEFAULT_NAMES = ("claude", "codex", "rehearse")

_YES = Choice(choice_id="accept", label="Allow once", grants="once")
_SESSION = Choice(choice_id="session", label="Allow for this session", grants="session")
_NO = Choice(choice_id="decline", label="Decline", grants="nothing")
_STOP = Choice(choice_id="cancel", label="Decline and stop", grants="stop")


class ScriptedTurn:
    """A turn of a scripted lane that has begun. Its methods are what the lane tells."""

    def __init__(self, lane: ScriptedLane, given: LaneTurn, turn_id: str) -> None:
        self.given = given
        """What the lane was given: text, images, context."""
        self.turn_id = turn_id
        self.steers: list[LaneTurn] = []
        """What was put into it while it ran."""
        self.answers: dict[str, Answer] = {}
        """By the question's id."""
        self.is_interrupted = False
        self.is_done = False
        self._lane = lane
        self._open: set[str] = set()
        self._items = itertools.count(1)
        self._changed = asyncio.Condition()

    # ── what it tells ──────────────────────────────────────────────────────

    def accept(self) -> None:
        """The engine has recorded the input."""
        self._lane.tell(Accepted(turn_id=self.turn_id, client_id=self.given.ticket))

    def text(self, text: str, item_id: str = "text-1") -> None:
        self._lane.tell(Text(turn_id=self.turn_id, item_id=item_id, text=text))

    def thought(self, text: str, item_id: str = "thought-1") -> None:
        self._lane.tell(Thought(turn_id=self.turn_id, item_id=item_id, text=text))

    def command(
        self,
        command: str,
        *,
        status: ActivityStatus = "running",
        item_id: str = "command-1",
        output: str | None = None,
        exit_code: int | None = None,
    ) -> None:
        """A command as of now; call it again with another status for its end."""
        self.activity(
            Activity(
                turn_id=self.turn_id,
                item_id=item_id,
                kind="command",
                title=command,
                status=status,
                input=command,
                output=output,
                exit_code=exit_code,
            )
        )

    def activity(self, activity: Activity) -> None:
        self._lane.tell(activity)

    def output(self, text: str, item_id: str = "command-1") -> None:
        self._lane.tell(Output(turn_id=self.turn_id, item_id=item_id, text=text))

    def plan(self, *steps: PlanStep) -> None:
        self._lane.tell(Plan(turn_id=self.turn_id, steps=steps))

    def diff(self, diff: str) -> None:
        self._lane.tell(Diff(turn_id=self.turn_id, diff=diff))

    def usage(self, total: int, window: int | None = None) -> None:
        tokens = Tokens(total=total)
        self._lane.tell(Usage(turn_id=self.turn_id, last=tokens, total=tokens, window=window))

    def ask(self, question: Question) -> str:
        """Ask; returns the question's id."""
        self._open.add(question.question_id)
        self._lane.tell(Asked(question=question))
        return question.question_id

    def approve(self, command: str = "make test") -> str:
        """Ask whether a command may run: once, for this session, no, no and stop."""
        return self.ask(
            Question(
                question_id=f"{self.turn_id}?{next(self._items)}",
                kind="command",
                thread_id="",
                turn_id=self.turn_id,
                item_id=None,
                message=f"Run {command}?",
                command=command,
                choices=(_YES, _SESSION, _NO, _STOP),
            )
        )

    def ask_words(
        self, text: str, options: Sequence[str] = (), *, is_secret: bool = False, allows_other: bool = True
    ) -> str:
        """Ask one question that words answer, with or without options. The field is named `answer`."""
        field = Field(
            field_id="answer",
            header="Question",
            text=text,
            options=tuple(FieldOption(label=option) for option in options),
            is_secret=is_secret,
            allows_other=allows_other,
        )
        return self.ask(
            Question(
                question_id=f"{self.turn_id}?{next(self._items)}",
                kind="input",
                thread_id="",
                turn_id=self.turn_id,
                item_id=None,
                message=text,
                choices=(_YES, _NO),
                fields=(field,),
            )
        )

    def withdraw(self, question_id: str) -> None:
        if question_id in self._open:
            self._open.discard(question_id)
            self._lane.tell(Withdrawn(question_id=question_id))

    def done(self, text: str = "", status: Status = "completed", failure: Failure | None = None) -> None:
        """The end; a second one is left out."""
        if self.is_done:
            return
        for question_id in sorted(self._open):
            self.withdraw(question_id)
        if status == "completed":
            self.accept()
        self.is_done = True
        self._lane.tell(TurnDone(turn_id=self.turn_id, status=status, text=text, failure=failure))

    def say(self, text: str) -> None:
        """Text, and then the end."""
        self.text(text)
        self.done(text)

    def fail(self, message: str = "it did not work", kind: str = "other") -> None:
        self.done(status="failed", failure=Failure(kind=kind, message=message))

    def die(self, last_words: str = "") -> None:
        """The lane's engine ends in the middle of it."""
        self._lane.tell(EngineGone(how="ended with signal 9", last_words=last_words))
        self.fail("The engine has ended.", kind="engine_lost")

    # ── what it hears ──────────────────────────────────────────────────────

    async def answered(self, question_id: str) -> Answer:
        async with self._changed:
            await self._changed.wait_for(lambda: question_id in self.answers)
        return self.answers[question_id]

    async def interrupted(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_interrupted)

    async def steered(self, count: int = 1) -> LaneTurn:
        """The latest of so many inputs that were put into it."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.steers) >= count)
        return self.steers[count - 1]

    def _answer(self, question_id: str, answer: Answer) -> None:
        if question_id in self._open:
            self.answers[question_id] = answer
            self.withdraw(question_id)
            self._wake()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._lane.spawn(wake())


Play: TypeAlias = Callable[[ScriptedTurn], Awaitable[None]]
"""What a lane does in its turns by itself."""


async def echo(turn: ScriptedTurn) -> None:
    """Repeat the words, and end."""
    turn.accept()
    turn.say(f"You said: {turn.given.text}")


def _nothing() -> None:
    """Nobody waits for a turn to begin."""


def _nothing_of(words: LaneTurn) -> None:
    """Nobody is told what is put into a turn."""


class ScriptedLane:
    """A lane whose turns a test drives."""

    def __init__(
        self,
        name: str,
        *,
        abilities: LaneAbilities = ALL_ABILITIES,
        problem: str | None = None,
        play: Play | None = None,
        thread_id: str | None = None,
    ) -> None:
        self._name = name
        self._abilities = abilities
        self.problem = problem
        """What `probe` says."""
        self.play = play
        self.turns: list[ScriptedTurn] = []
        self.resumed: str | None = None
        """What it was opened with."""
        self.cwd: Path | None = None
        self.is_closed = False
        self.obeys = True
        """Whether an interrupt ends the turn at once; else the test does."""
        self.takes_steers = True
        self.answers_steers = asyncio.Event()
        """Cleared: whether words are taken is not said before it is set again."""
        self.answers_steers.set()
        self.dies_at_open = False
        self.host: LaneHost | None = None
        self._thread_id = thread_id
        self.on_begun: Callable[[], None] = _nothing
        self.on_steer: Callable[[LaneTurn], None] = _nothing_of
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()

    # ── for the test ───────────────────────────────────────────────────────

    @property
    def turn(self) -> ScriptedTurn:
        """The latest turn."""
        return self.turns[-1]

    async def begun(self, count: int = 1) -> ScriptedTurn:
        """The turn of that number, once it has begun."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.turns) >= count)
        return self.turns[count - 1]

    async def closed(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_closed)

    def tell(self, event: Event) -> None:
        if self.host is not None:
            self.host.on_event(event)

    def spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ── the contract ───────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        return self._name

    @property
    def usage(self) -> str:
        return f"Usage: /{self._name} <task>"

    @property
    def description(self) -> str:
        return f"Run a task with {self._name.capitalize()}"

    @property
    def abilities(self) -> LaneAbilities:
        return self._abilities

    @property
    def thread_id(self) -> str | None:
        return self._thread_id

    async def probe(self) -> str | None:
        return self.problem

    async def open(self, cwd: Path, host: LaneHost, *, resume: str | None = None) -> None:
        if self.dies_at_open:
            raise RuntimeError(f"{self._name} does not start")
        self.cwd, self.host, self.resumed = cwd, host, resume
        if resume is not None:
            self._thread_id = resume

    def begin(self, turn: LaneTurn) -> None:
        running = ScriptedTurn(self, turn, f"{self._name}-turn-{len(self.turns) + 1}")
        self.turns.append(running)
        if self._abilities.resumes and self._thread_id is None:
            self._thread_id = f"{self._name}-thread"
        self.tell(TurnStarted(turn_id=running.turn_id, ticket=turn.ticket))
        self._wake()
        self.on_begun()
        if self.play is not None:
            self.spawn(self.play(running))

    async def steer(self, turn: LaneTurn) -> bool:
        await self.answers_steers.wait()
        if not self.turns or self.turn.is_done or not self.takes_steers:
            return False
        self.on_steer(turn)  # before they count as recorded
        self.turn.steers.append(turn)
        self.turn._wake()
        self.tell(Accepted(turn_id=self.turn.turn_id, client_id=turn.ticket))
        return True

    async def interrupt(self) -> None:
        if not self.turns or self.turn.is_done:
            return
        self.turn.is_interrupted = True
        self.turn._wake()
        if self.obeys:
            self.turn.done(status="interrupted")

    def answer(self, question_id: str, answer: Answer) -> None:
        if self.turns and not self.turn.is_done:
            self.turn._answer(question_id, answer)

    async def close(self) -> None:
        if self.turns and not self.turn.is_done:
            self.turn.done(status="interrupted")
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._changed:
                self._changed.notify_all()

        self.spawn(wake())


class ScriptedLanes:
    """Makes scripted lanes, one of each name for every conversation that wants it."""

    def __init__(
        self,
        names: Sequence[str] = DEFAULT_NAMES,
        *,
        abilities: dict[str, LaneAbilities] | None = None,
        unusable: dict[str, str] | None = None,
        play: Play | None = None,
        plays: dict[str, Play] | None = None,
        problems: tuple[str, ...] = (),
        on_steer: Callable[[LaneTurn], None] = _nothing_of,
    ) -> None:
        """`unusable` has what `probe` says, by lane. `plays` goes before `play`.

        `on_steer` is told of all words that are put into turns, before their lanes have recorded them.
        """
        self._names = tuple(names)
        self._abilities = abilities or {}
        self._play, self._plays = play, plays or {}
        self.unusable = dict(unusable or {})
        self._problems = problems
        self._on_steer = on_steer
        self.made: list[ScriptedLane] = []
        """All lanes so far, in order."""
        self._begun = asyncio.Event()

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def problems(self) -> tuple[str, ...]:
        return self._problems

    def make(self, name: str, cwd: Path) -> Lane:
        if name not in self._names:
            raise KeyError(name)
        lane = ScriptedLane(
            name,
            abilities=self._abilities.get(name, ALL_ABILITIES),
            problem=self.unusable.get(name),
            play=self._plays.get(name, self._play),
        )
        lane.on_begun, lane.on_steer = self._begun.set, self._on_steer
        self.made.append(lane)
        return lane

    async def given(self, text: str) -> ScriptedTurn:
        """The turn of any lane that was given these words, once it has begun."""
        while True:
            for lane in self.made:
                for turn in lane.turns:
                    if turn.given.text == text:
                        return turn
            self._begun.clear()
            await self._begun.wait()

    def lane(self, name: str, index: int = -1) -> ScriptedLane:
        """The latest lane of that name, or the one of that index."""
        return [lane for lane in self.made if lane.name == name][index]
