"""A `Chat` that a test drives by hand: for tests of platforms, without lanes, engines and a store.

What people send is in `taken` and `taps`; what a conversation shows is what the test says (`show`).

    chat = HandChat()
    ...                                     # a platform joins, a person writes
    message = await chat.next_taken()
    chat.show(message.conversation_id, TextDone(lane="codex", ticket="t1", part="p1", text="Done."))
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from laneway.base.errors import ConversationHeld, ConversationUnknown
from laneway.core.conversations import ConversationRecord
from laneway.core.model import Choice, Field, FieldOption, Question
from laneway.doors.chat.messages import Incoming, Place, Tap, TapResult
from laneway.doors.chat.outputs import (
    VOLATILE,
    AnyOutput,
    Button,
    QuestionOver,
    QuestionShown,
    Said,
    Shown,
    StatusNow,
    TextDelta,
    TextDone,
)
from laneway.doors.chat.ports import ChatCommand, ChatState, PartialText, View

BEGAN_AT = 1_800_000_000.0
"""The first output's time; each later one is a second after the one before."""


class HandConversation:
    """One conversation of a `HandChat`."""

    def __init__(self, record: ConversationRecord) -> None:
        self.record = record
        self.outputs: list[Shown] = []
        self.status = StatusNow(default_lane=record.default_lane, active_lane=None)
        self.questions: dict[int, QuestionShown] = {}
        self.texts: dict[str, PartialText] = {}
        self.views: dict[str, View] = {}
        """By the key of their place."""
        self.holder: str | None = None
        """Another process that holds it, in words."""


class HandChat:
    def __init__(self, *, cwd: str = "/work", default_lane: str = "claude") -> None:
        self._cwd = cwd
        self._default_lane = default_lane
        self.conversations: dict[str, HandConversation] = {}
        self.taken: list[Incoming] = []
        """Every message once, in order."""
        self.taps: list[Tap] = []
        self.tap_result = TapResult("Done.")
        """The answer to every tap."""
        self.on_taken: Callable[[Incoming], None] = lambda message: None
        """What the test does at once with a message; it is among the outputs then."""
        self.is_ready = True
        self._places: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._seen: dict[tuple[str, str], int] = {}
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    # ── for the test ───────────────────────────────────────────────────────

    def add(self, conversation_id: str = "", *, title: str = "", cwd: str | None = None) -> HandConversation:
        """A conversation that was there before."""
        conversation_id = conversation_id or f"c{next(self._numbers)}"
        at = BEGAN_AT + len(self.conversations)
        made = HandConversation(
            ConversationRecord(
                conversation_id=conversation_id,
                cwd=cwd or self._cwd,
                default_lane=self._default_lane,
                created_at=at,
                used_at=at,
                title=title,
            )
        )
        self.conversations[conversation_id] = made
        return made

    def show(self, conversation_id: str | None, output: AnyOutput) -> Shown:
        """What every view of the conversation is shown next."""
        conversation = self._known(conversation_id)
        is_stored = not isinstance(output, VOLATILE)
        number = len(conversation.outputs) + 1 if is_stored else 0
        at = BEGAN_AT + len(conversation.outputs)
        shown = Shown(
            conversation_id=conversation.record.conversation_id, number=number, at=at, output=output
        )
        if is_stored:
            conversation.outputs.append(shown)
        self._note(conversation, output)
        for view in list(conversation.views.values()):
            view.show(shown)
        self._wake()
        return shown

    def ask(
        self, conversation_id: str | None, question: Question, *buttons: Button, lane: str = "claude"
    ) -> int:
        """Ask, with a number of its own; returns it."""
        conversation = self._known(conversation_id)
        number = 1 + sum(isinstance(each.output, QuestionShown) for each in conversation.outputs)
        self.show(
            conversation_id,
            QuestionShown(
                number=number,
                lane=lane,
                ticket="t1",
                question=question,
                buttons=buttons or approval_buttons(number),
                for_owners=question.kind != "input",
            ),
        )
        return number

    def settle(
        self, conversation_id: str | None, number: int, text: str = "Allow once", by: str = "you"
    ) -> None:
        """A question is answered."""
        lane = self._known(conversation_id).questions[number].lane
        self.show(conversation_id, QuestionOver(number=number, lane=lane, how="answered", by=by, text=text))

    def move(self, place: Place, conversation_id: str) -> None:
        """The place shows another conversation, as after `/new`."""
        left = self._known(self._places[place.key])
        view = left.views.pop(place.key, None)
        self._places[place.key] = conversation_id
        if view is not None:
            self._known(conversation_id).views[place.key] = view
            view.on_moved(conversation_id)

    async def next_taken(self, count: int = 1) -> Incoming:
        """The message of that number, counted from 1."""
        await self._until(lambda: len(self.taken) >= count)
        return self.taken[count - 1]

    async def next_tap(self, count: int = 1) -> Tap:
        await self._until(lambda: len(self.taps) >= count)
        return self.taps[count - 1]

    async def joined(self) -> HandConversation:
        """The first conversation that has a view."""
        await self._until(lambda: any(each.views for each in self.conversations.values()))
        return next(each for each in self.conversations.values() if each.views)

    # ── the port ───────────────────────────────────────────────────────────

    async def join(self, place: Place, view: View, conversation_id: str | None = None) -> ChatState:
        conversation_id = conversation_id or self._places.get(place.key)
        conversation = self._known(conversation_id) if conversation_id else self.add()
        self._check(conversation)
        for other in self.conversations.values():
            other.views.pop(place.key, None)
        self._places[place.key] = conversation.record.conversation_id
        conversation.views[place.key] = view
        self._wake()
        return self._state(conversation)

    def leave(self, place: Place, view: View) -> None:
        for conversation in self.conversations.values():
            if conversation.views.get(place.key) is view:
                del conversation.views[place.key]

    async def take(self, message: Incoming) -> int | None:
        conversation_id = message.conversation_id or self._places.get(message.place.key)
        conversation = self._known(conversation_id) if conversation_id else self.add()
        self._check(conversation)
        self._places.setdefault(message.place.key, conversation.record.conversation_id)
        key = (message.place.key, message.message_id)
        if key in self._seen:
            return None
        self._seen[key] = len(self._seen) + 1
        message = msgspec.structs.replace(message, conversation_id=conversation.record.conversation_id)
        self.taken.append(message)
        if not conversation.record.title:
            conversation.record = msgspec.structs.replace(conversation.record, title=message.text[:60])
        self.show(
            message.conversation_id,
            Said(
                input_id=self._seen[key],
                place=message.place,
                message_id=message.message_id,
                sender=message.sender.name,
                platform=message.place.platform,
                text=message.text,
                images=len(message.images),
            ),
        )
        self.on_taken(message)
        self._wake()
        return self._seen[key]

    async def tap(self, tap: Tap) -> TapResult:
        self.taps.append(tap)
        self._wake()
        return self.tap_result

    async def state(self, conversation_id: str) -> ChatState:
        conversation = self._known(conversation_id)
        self._check(conversation)
        return self._state(conversation)

    async def outputs(self, conversation_id: str, after: int, limit: int = 500) -> list[Shown]:
        known = self.conversations.get(conversation_id)  # as in the store: what is not known has none
        return [each for each in known.outputs if each.number > after][:limit] if known else []

    async def latest(self, limit: int = 50) -> list[ConversationRecord]:
        records = [each.record for each in self.conversations.values()]
        return sorted(records, key=lambda record: -record.used_at)[:limit]

    def commands(self, conversation_id: str) -> list[ChatCommand]:
        self._known(conversation_id)
        return [
            ChatCommand("stop", "stop all work here"),
            ChatCommand("codex", "Run a task with Codex", usage="/codex <task>", kind="lane"),
        ]

    async def wait_ready(self, conversation_id: str) -> bool:
        await self._until(lambda: self.is_ready or bool(self._known(conversation_id).questions))
        return bool(self._known(conversation_id).questions)

    async def decline_questions(self, conversation_id: str) -> None:
        for number, question in list(self._known(conversation_id).questions.items()):
            self.show(conversation_id, QuestionOver(number=number, lane=question.lane, how="declined"))

    async def quit(self, conversation_id: str) -> None:
        self._known(conversation_id).status = StatusNow(default_lane=self._default_lane, active_lane=None)

    # ── inside ─────────────────────────────────────────────────────────────

    def _known(self, conversation_id: str | None) -> HandConversation:
        if conversation_id not in self.conversations:
            raise ConversationUnknown(conversation_id or "")
        return self.conversations[conversation_id]

    def _check(self, conversation: HandConversation) -> None:
        if conversation.holder is not None:
            raise ConversationHeld(conversation.record.conversation_id, conversation.holder)

    def _note(self, conversation: HandConversation, output: AnyOutput) -> None:
        match output:
            case StatusNow():
                conversation.status = output
            case QuestionShown():
                conversation.questions[output.number] = output
            case QuestionOver():
                conversation.questions.pop(output.number, None)
            case TextDelta():
                before = conversation.texts.get(output.part)
                conversation.texts[output.part] = PartialText(
                    lane=output.lane,
                    ticket=output.ticket,
                    part=output.part,
                    text=(before.text if before else "") + output.text,
                    kind=output.kind,
                )
            case TextDone():
                conversation.texts.pop(output.part, None)
            case _:
                pass

    def _state(self, conversation: HandConversation) -> ChatState:
        return ChatState(
            record=conversation.record,
            last_number=len(conversation.outputs),
            status=conversation.status,
            questions=tuple(conversation.questions.values()),
            texts=tuple(conversation.texts.values()),
        )

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(holds)

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._changed:
                self._changed.notify_all()

        task = asyncio.ensure_future(wake())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


# ── questions ──────────────────────────────────────────────────────────────


def approval_buttons(number: int) -> tuple[Button, ...]:
    return (
        Button(f"q:{number}:0", "Allow once", "yes"),
        Button(f"q:{number}:1", "Allow this command for this session", "yes"),
        Button(f"q:{number}:2", "Decline", "no"),
    )


def approval(command: str = "make test", **more: Any) -> Question:
    """May a command run: once, for this session, no."""
    return _question(
        kind="command",
        message=f"Run {command}?",
        command=command,
        choices=(
            Choice(choice_id="accept", label="Allow once", grants="once"),
            Choice(choice_id="session", label="Allow for this session", grants="session"),
            Choice(choice_id="decline", label="Decline", grants="nothing"),
        ),
        **more,
    )


def form(*fields: Field, message: str = "Please fill this in") -> Question:
    """A question with fields."""
    return _question(
        kind="input",
        message=message,
        fields=fields,
        choices=(
            Choice(choice_id="accept", label="Answer", grants="once"),
            Choice(choice_id="decline", label="Skip", grants="nothing"),
        ),
    )


def field(name: str, text: str, options: Sequence[str] = (), **more: bool) -> Field:
    return Field(
        field_id=name,
        header=name.capitalize(),
        text=text,
        options=tuple(FieldOption(label=each) for each in options),
        **more,
    )


def _question(**values: Any) -> Question:
    return Question(question_id="q", thread_id="", turn_id=None, item_id=None, **values)
