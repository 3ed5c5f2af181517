"""A conversation that a test plays by hand: outputs are shown when the test says so, what is sent is kept."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from msgspec.structs import replace

from laneway.core.conversations import ConversationRecord
from laneway.core.model import Activity, Choice, Failure, Field, Question, Tokens
from laneway.doors.chat.messages import Incoming, Place, Tap, TapResult
from laneway.doors.chat.outputs import (
    VOLATILE,
    ActivityShown,
    AnyOutput,
    Button,
    QuestionOver,
    QuestionShown,
    Shown,
    StatusNow,
    TextDelta,
    TextDone,
    TurnBegan,
    TurnEnded,
)
from laneway.doors.chat.ports import ChatCommand, ChatState, View
from laneway.rendering.choices import offered

COMMANDS = [
    ChatCommand("help", "what can be typed here"),
    ChatCommand("lane", "choose the lane that plain words go to"),
    ChatCommand("attach", "attach an image"),
    ChatCommand("claude", "Claude Code", "Usage: /claude <task>", "lane"),
    ChatCommand("codex", "OpenAI Codex", "Usage: /codex <task>", "lane"),
    ChatCommand("review", "review the changes", kind="engine", lane="codex"),
]


class HandChat:
    """A `Chat` of one conversation."""

    def __init__(self, cwd: str = "/work") -> None:
        self.record = ConversationRecord(
            conversation_id="c1", cwd=cwd, default_lane="claude", created_at=0.0, used_at=0.0
        )
        self.taken: list[Incoming] = []
        self.taps: list[Tap] = []
        self.tap_result = TapResult("done")
        self.shown: list[Shown] = []
        self.joined: str | None = None
        self.has_quit = False
        self.declines = 0
        self.place = Place("", "")
        self.view: View | None = None
        self.status = StatusNow(default_lane="claude", active_lane=None)
        self.asks = False
        self._is_ready = asyncio.Event()
        self._is_ready.set()
        self.on_take: Callable[[Incoming], None] = lambda message: None
        self.on_join: Callable[[], None] = lambda: None
        self.questions: dict[int, QuestionShown] = {}
        self._numbers = itertools.count(1)
        self._changed = asyncio.Condition()

    # ── for the test ───────────────────────────────────────────────────────

    def show(self, *outputs: AnyOutput) -> None:
        for output in outputs:
            number = 0 if isinstance(output, VOLATILE) else next(self._numbers)
            shown = Shown(conversation_id="c1", number=number, at=0.0, output=output)
            if number:
                self.shown.append(shown)
            if isinstance(output, StatusNow):
                self.status = output
                self.be_ready(output.active_lane is None)
            if self.view is not None:
                self.view.show(shown)

    def begin(
        self, lane: str = "claude", ticket: str = "t1", task: str = "task", *, banner: bool = False
    ) -> None:
        self.show(
            TurnBegan(lane=lane, ticket=ticket, task=task, has_banner=banner),
            StatusNow(default_lane="claude", active_lane=lane, working_since=1.0),
        )

    def end(self, ended: TurnEnded) -> None:
        self.show(ended, StatusNow(default_lane="claude", active_lane=None))

    def ask(self, question: Question, number: int = 1, lane: str = "codex") -> None:
        choices = [] if question.fields else offered(question)
        buttons = tuple(Button(f"q:{number}:{at}", choice.label) for at, choice in enumerate(choices))
        self.questions[number] = QuestionShown(
            number=number, lane=lane, ticket="t1", question=question, buttons=buttons
        )
        self.show(self.questions[number])

    def over(self, number: int = 1, text: str = "Allow once") -> None:
        self.show(QuestionOver(number=number, lane="codex", how="answered", text=text))

    def be_ready(self, is_ready: bool = True, *, asks: bool = False) -> None:
        self.asks = asks
        if is_ready:
            self._is_ready.set()
        else:
            self._is_ready.clear()

    async def wait_taken(self, count: int = 1) -> Incoming:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.taken) >= count)
        return self.taken[count - 1]

    async def wait_tapped(self, count: int = 1) -> Tap:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.taps) >= count)
        return self.taps[count - 1]

    # ── the port ───────────────────────────────────────────────────────────

    async def join(self, place: Place, view: View, conversation_id: str | None = None) -> ChatState:
        self.place, self.view, self.joined = place, view, conversation_id
        self.on_join()
        return await self.state("c1")

    def leave(self, place: Place, view: View) -> None:
        self.view = None

    async def take(self, message: Incoming) -> int | None:
        async with self._changed:
            self.taken.append(message)
            self._changed.notify_all()
        self.on_take(message)
        return len(self.taken)

    async def tap(self, tap: Tap) -> TapResult:
        async with self._changed:
            self.taps.append(tap)
            self._changed.notify_all()
        return self.tap_result

    async def state(self, conversation_id: str) -> ChatState:
        return ChatState(
            record=replace(self.record, conversation_id=conversation_id),
            last_number=len(self.shown),
            status=self.status,
        )

    async def outputs(self, conversation_id: str, after: int, limit: int = 500) -> list[Shown]:
        return [shown for shown in self.shown if shown.number > after][:limit]

    async def latest(self, limit: int = 50) -> list[ConversationRecord]:
        return [self.record]

    def commands(self, conversation_id: str) -> list[ChatCommand]:
        return COMMANDS

    async def wait_ready(self, conversation_id: str) -> bool:
        await self._is_ready.wait()
        return self.asks

    async def decline_questions(self, conversation_id: str) -> None:
        self.declines += 1
        self.asks = False
        self._is_ready.set()

    async def quit(self, conversation_id: str) -> None:
        self.has_quit = True


# ── what it may show ───────────────────────────────────────────────────────

ONCE = Choice(choice_id="accept", label="Allow once", grants="once")
SESSION = Choice(choice_id="session", label="Allow for this session", grants="session")
NO = Choice(choice_id="decline", label="Decline", grants="nothing", takes_words=True)
STOP = Choice(choice_id="cancel", label="Decline and stop", grants="stop")


def approval(command: str = "make test") -> Question:
    return Question(
        question_id="q1",
        kind="command",
        thread_id="",
        turn_id="t1",
        item_id=None,
        message=f"Run {command}?",
        command=command,
        choices=(ONCE, SESSION, NO, STOP),
    )


def form(*fields: Field) -> Question:
    return Question(
        question_id="q1",
        kind="input",
        thread_id="",
        turn_id="t1",
        item_id=None,
        message="",
        choices=(ONCE, NO),
        fields=fields,
    )


def text(words: str, *, part: str = "p1", lane: str = "claude") -> list[AnyOutput]:
    """A text as it streams, word by word, and its end."""
    outputs: list[AnyOutput] = []
    offset = 0
    for piece in words.split(" "):
        delta = piece if offset == 0 else f" {piece}"
        outputs.append(TextDelta(lane=lane, ticket="t1", part=part, offset=offset, text=delta))
        offset += len(delta)
    return [*outputs, TextDone(lane=lane, ticket="t1", part=part, text=words)]


def command(
    line: str,
    *,
    ticket: str = "t1",
    lane: str = "codex",
    output: str | None = None,
    exit_code: int | None = None,
) -> ActivityShown:
    is_over = output is not None or exit_code is not None
    return ActivityShown(
        lane=lane,
        ticket=ticket,
        activity=Activity(
            turn_id=ticket,
            item_id=line,
            kind="command",
            title=line,
            status=("failed" if exit_code else "completed") if is_over else "running",
            output=output,
            exit_code=exit_code,
        ),
    )


def done(
    lane: str = "claude", *, banner: bool = False, diff: str = "", failure: Failure | None = None
) -> TurnEnded:
    return TurnEnded(
        lane=lane,
        ticket="t1",
        status="failed" if failure else "completed",
        has_banner=banner,
        diff=diff,
        failure=failure,
        tokens=Tokens(total=1234),
        seconds=7.0,
    )
