"""Takes up a conversation where the last process has left it: what `restoring` decides is told and posted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, assert_never

from laneway.base.plain import label, quoted
from laneway.core.conversations import ConversationRecord, InputState
from laneway.doors.chat.conversation_letters import ChatLetter, CutFound, InputTaken, MarkInput
from laneway.doors.chat.conversation_turns import ConversationParts
from laneway.doors.chat.output_log import OutputLog, decoded
from laneway.doors.chat.outputs import Button, QuestionOver, Told
from laneway.doors.chat.restoring import (
    ContinueAgain,
    LeaveAlone,
    OfferAgain,
    Restored,
    RunAgain,
    TellCut,
    restored,
    seen_in,
)
from laneway.doors.chat.turn_rules import continue_button

LOOK_BACK = 500
"""Outputs in which is looked for what was told before a restart, so that it is not told twice."""
_OPEN: tuple[InputState, ...] = ("waiting", "begun", "accepted")


class Restorable(Protocol):
    """The conversation."""

    record: ConversationRecord
    outputs: OutputLog

    def post(self, letter: ChatLetter) -> None: ...
    def mark(self, mark: MarkInput) -> None: ...
    def engine_commands(self) -> Mapping[str, tuple[str, ...]]: ...


async def restore(conversation: Restorable, parts: ConversationParts) -> None:
    store, port, record = parts.store, parts.store.port, conversation.record
    for question in await store.call(port.open_questions, record.conversation_id):
        conversation.outputs.put(QuestionOver(number=question.number, lane=question.lane, how="void"))
        conversation.outputs.then(_closing(parts, record.conversation_id, question.number))
    records = await store.call(port.inputs, record.conversation_id, _OPEN)
    if not records:
        return
    last = await store.call(port.last_output, record.conversation_id)
    before = await store.call(port.outputs, record.conversation_id, max(0, last - LOOK_BACK), LOOK_BACK)
    seen = seen_in(each.output for each in map(decoded, before) if each is not None)
    now, catch_up_s = parts.wall(), parts.options.catch_up_s
    for found in restored(records, now, catch_up_s, seen, Path(record.cwd)):
        _follow(conversation, found)


def _closing(parts: ConversationParts, conversation_id: str, number: int) -> Callable[[], None]:
    return lambda: parts.store.port.close_question(conversation_id, number)


def _follow(conversation: Restorable, found: Restored) -> None:
    """Told first and marked then: who is killed in between tells it again, or sees that it was told."""
    match found:
        case RunAgain(taken=taken):
            is_command = taken.text.lstrip().startswith("/")
            commands = conversation.engine_commands() if is_command else {}
            conversation.post(InputTaken(taken=taken, busy="queue", engine_commands=commands))
        case OfferAgain(cut=cut):
            text = f"This message waited for too long to be run by itself: {quoted(label(cut.text))}"
            button = Button(f"/continue {cut.input_id}", "Run it now")
            conversation.outputs.put(Told(text=text, buttons=(button,)))
            conversation.mark(MarkInput(input_id=cut.input_id, state="void"))
            conversation.post(CutFound(cut))
        case TellCut(input_id=input_id, cut=cut):
            text = f"Laneway ended in the middle of this turn: {quoted(label(cut.text))}"
            _tell_cut(conversation, text, input_id, cut.lane)
            conversation.mark(MarkInput(input_id=input_id, state="done" if cut.is_accepted else "void"))
            conversation.post(CutFound(cut))
        case ContinueAgain(input_id=input_id, continues=continues):
            text = "Laneway ended before it could go on with the turn that was cut."
            _tell_cut(conversation, text, continues, "")
            conversation.mark(MarkInput(input_id=input_id, state="void"))
        case LeaveAlone(input_id=input_id, state=state):
            conversation.mark(MarkInput(input_id=input_id, state=state))
        case _:
            assert_never(found)


def _tell_cut(conversation: Restorable, text: str, input_id: int, lane: str) -> None:
    buttons = (continue_button(input_id),)
    conversation.outputs.put(Told(text=text, level="warning", lane=lane or None, buttons=buttons))
