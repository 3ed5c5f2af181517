"""What a conversation shows, as values: every platform renders these, and nothing else.

Most outputs are stored and numbered without gaps (`Shown`), so that a platform can catch up after a
restart or a lost connection by the last number it saw. `TextDelta`, `OutputDelta` and `StatusNow` are
not: they have the number 0, and whoever missed some gets the whole in a later output. Texts of people and
models are as they came: the platform that shows them fences or escapes them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from laneway.core.model import Activity, Failure, Plan, Question, Status, Tokens
from laneway.doors.chat.messages import Place


class ChatOutput(msgspec.Struct, frozen=True, kw_only=True, tag_field="output"):
    """Base of all outputs."""


class Button(msgspec.Struct, frozen=True):
    """A button below an output. Pressing it sends a `Tap` with its data; the same words can be typed."""

    data: str
    """At most 64 bytes, ASCII."""
    label: str
    style: Literal["plain", "yes", "no"] = "plain"


# ── people ─────────────────────────────────────────────────────────────────


class Said(ChatOutput, frozen=True, tag="said"):
    """A message of a person, in its order among the outputs. The place it came from has it already."""

    input_id: int
    place: Place
    message_id: str
    sender: str
    """A name chosen by its bearer."""
    platform: str
    text: str
    images: int = 0
    lane: str | None = None
    """The lane that it is for, if it is for one."""


ReceiptKind: TypeAlias = Literal["begun", "queued", "held", "steered", "answered", "kept", "done", "refused"]
"""Starts a turn; waits for one; waits behind a question; went into the running turn; answered a question;
an image that waits for words; a command that was carried out; not taken."""


class InputReceipt(ChatOutput, frozen=True, tag="receipt"):
    """What has become of a message. A message may get several: queued, then begun."""

    input_id: int
    place: Place
    message_id: str
    kind: ReceiptKind
    lane: str | None = None
    position: int = 0
    """In the queue, counted from 1."""
    text: str = ""
    """Said in words; always set for `refused`."""


# ── turns ──────────────────────────────────────────────────────────────────


class TurnBegan(ChatOutput, frozen=True, tag="turn_began"):
    """A lane begins to work. Lanes other than the default one have a banner here and at the end."""

    lane: str
    ticket: str
    task: str
    """The words that it works on; empty for a turn that the lane began by itself."""
    has_banner: bool
    sender: str = ""
    """Who asked for it."""
    input_id: int = 0
    caller: str | None = None
    """The lane that has delegated this; none if a person asked."""


class TextDelta(ChatOutput, frozen=True, tag="text_delta"):
    """More of a text that a lane is writing. Not stored."""

    lane: str
    ticket: str
    part: str
    """Names the text; unique in the conversation."""
    offset: int
    """Characters of the text before this. A reader that has another number asks for the whole."""
    text: str
    kind: Literal["text", "thought"] = "text"


class TextDone(ChatOutput, frozen=True, tag="text_done"):
    """A complete text of a lane (Markdown), or a thought, which is shown folded."""

    lane: str
    ticket: str
    part: str
    text: str
    kind: Literal["text", "thought"] = "text"


class OutputDelta(ChatOutput, frozen=True, tag="output_delta"):
    """What a running command prints. Not stored; the complete output comes with its end."""

    lane: str
    ticket: str
    item_id: str
    text: str


class ActivityShown(ChatOutput, frozen=True, tag="activity"):
    """A command, edit or tool call, as of now: at its start, when it changes, at its end."""

    lane: str
    ticket: str
    activity: Activity


class PlanShown(ChatOutput, frozen=True, tag="plan"):
    """The plan of a turn, as of now: shown once, and then changed in place."""

    lane: str
    ticket: str
    plan: Plan


class TurnEnded(ChatOutput, frozen=True, tag="turn_ended"):
    """A lane's turn is over. Everything of it has been shown."""

    lane: str
    ticket: str
    status: Status
    has_banner: bool
    text: str = ""
    """The last words of the lane, which were shown already."""
    failure: Failure | None = None
    diff: str = ""
    """All edits of the turn, as one unified diff."""
    tokens: Tokens | None = None
    """Of this turn."""
    seconds: float = 0.0
    caller: str | None = None
    stopped_by: str = ""
    """Who or what ended it early: `stop`, `message`, `silence`, `delegation`; empty otherwise."""
    buttons: tuple[Button, ...] = ()
    """Continue, for a turn that was cut."""


# ── questions ──────────────────────────────────────────────────────────────


class QuestionShown(ChatOutput, frozen=True, tag="question"):
    """A lane asks. `buttons` has the choices of an approval, or the options of a single question."""

    number: int
    """Names the question in this conversation: users write it where several are open."""
    lane: str
    ticket: str
    question: Question
    buttons: tuple[Button, ...] = ()
    for_owners: bool = False
    """Whether only owners may answer it (approvals)."""
    asked_by: str = ""
    """The user id of whoever started the turn, who may answer it, too, unless it is for owners."""


class QuestionOver(ChatOutput, frozen=True, tag="question_over"):
    """A question needs no answer any more: its buttons are to be removed."""

    number: int
    lane: str
    how: Literal["answered", "declined", "expired", "withdrawn", "void"]
    """Void: the process that asked has ended."""
    by: str = ""
    """The name of who answered."""
    text: str = ""
    """The choice or the words; never those of a secret field."""


# ── Laneway itself ─────────────────────────────────────────────────────────


class Told(ChatOutput, frozen=True, tag="told"):
    """A text of Laneway's own, or of an engine about itself: answers of commands, warnings, a compaction."""

    text: str
    """Markdown. Foreign text in it is fenced already."""
    level: Literal["info", "warning", "error"] = "info"
    lane: str | None = None
    buttons: tuple[Button, ...] = ()
    only: Place | None = None
    """Shown in this place only: the answer to a command; none for everywhere."""


class FileShown(ChatOutput, frozen=True, tag="file"):
    """A file that a lane sends to the people. The platform reads it when it sends it."""

    lane: str
    path: str
    name: str
    caption: str = ""
    is_approved: bool = False
    """Whether a person has allowed it, although it is not below the folder, or is ignored by git."""


class StatusNow(ChatOutput, frozen=True, tag="status"):
    """What a status line shows. Not stored."""

    default_lane: str
    active_lane: str | None
    is_waiting: bool = False
    """Whether a question is open."""
    queued: int = 0
    model: str = ""
    tokens: int = 0
    """Of the active lane's conversation so far, or of the default lane's."""
    window: int | None = None
    working_since: float = 0.0
    """On the clock of `time.time()`; 0 if no lane works."""


AnyOutput: TypeAlias = (
    Said
    | InputReceipt
    | TurnBegan
    | TextDelta
    | TextDone
    | OutputDelta
    | ActivityShown
    | PlanShown
    | TurnEnded
    | QuestionShown
    | QuestionOver
    | Told
    | FileShown
    | StatusNow
)
VOLATILE = (TextDelta, OutputDelta, StatusNow)
"""Neither numbered nor stored."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An output with its number in its conversation."""

    conversation_id: str
    number: int
    """0 for what is not stored."""
    at: float
    """Seconds since 1970."""
    output: AnyOutput
