"""Events, questions and answers of a session, as values. Engines produce events, front ends render them.

Frozen msgspec structs: five times faster to make than dataclasses, and there are tens of thousands
of text deltas. Every turn has exactly one `TurnStarted` and exactly one `TurnDone`, which is last; a
command that outlives its turn ends with `Outlived`. A message that the engine's adapter does not know
becomes `Other`.

`frame` is the message an event came from, byte for byte. A front end may forward it; nobody parses
it again.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.engines import CODEX
from laneway.base.whole_text import whole, whole_text


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the values inside events."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of all events."""

    frame: bytes = b""


# ── parts of events ────────────────────────────────────────────────────────


class Failure(Value, frozen=True):
    """Why a turn failed. `kind` is for programs, `message` for people."""

    kind: str
    message: str
    http_status: int | None = None


class Location(Value, frozen=True):
    path: str
    line: int | None = None


class FileChange(Value, frozen=True):
    """`diff` has hunks without file headers; for an added or a deleted file it is the whole text."""

    path: str
    kind: Literal["add", "delete", "update"]
    diff: str
    move_path: str | None = None


class PlanStep(Value, frozen=True):
    text: str
    status: Literal["pending", "running", "completed"]


class Tokens(Value, frozen=True):
    input: int = 0
    cached_input: int = 0
    output: int = 0
    reasoning: int = 0
    total: int = 0


class Look(Value, frozen=True):
    """What a `read` looks at. Paths as the engine has them, absolute or of the session's folder."""

    purpose: Literal["read", "search", "list"]
    """One file; the text of files (`pattern` is searched for); names of files (which match `pattern`)."""
    path: str = ""
    """The file or the folder; empty for the session's folder."""
    pattern: str = ""


class LastingRule(Value, frozen=True):
    """What holds from now on, beyond what the question asks. Neither field: a rule that nobody can judge."""

    command: tuple[str, ...] = ()
    """Every command that begins with these words is allowed."""
    host: str = ""
    """Connections to it are allowed; by a choice that grants nothing, they are blocked."""


class Choice(Value, frozen=True):
    """One answer that a question allows. `grants` is the scope of a yes."""

    choice_id: str
    label: str
    grants: Literal["once", "session", "always", "nothing", "stop"]
    rule: LastingRule | None = None
    """The rule that it adds, if it adds one."""
    takes_words: bool = False
    """Whether the engine passes on what the person says with it (`Answer.words`): why not, what instead."""


class FieldOption(Value, frozen=True):
    """One of the answers that a field suggests. The answer is its label."""

    label: str
    description: str = ""


class Field(Value, frozen=True):
    """One input that the model asks a person for. Its value is a text, or with `is_multiple` a list."""

    field_id: str
    header: str
    text: str
    options: tuple[FieldOption, ...] = ()
    is_secret: bool = False
    allows_other: bool = False
    """Whether own words are an answer, too."""
    is_multiple: bool = False
    """Whether several options may be chosen at once."""


class Question(Value, frozen=True):
    """A decision that the engine waits for. No answer in time means decline."""

    question_id: str
    kind: Literal["command", "patch", "permissions", "input", "elicitation", "tool", "plan"]
    thread_id: str
    turn_id: str | None
    item_id: str | None
    message: str
    choices: tuple[Choice, ...]
    reason: str | None = None
    command: str | None = None
    cwd: str | None = None
    changes: tuple[FileChange, ...] = ()
    fields: tuple[Field, ...] = ()
    schema: Any = None
    url: str | None = None
    params: Any = None
    is_escalation: bool = True
    """Whether a yes lets the engine do more than its sandbox allows; true in doubt."""
    tool: str | None = None
    """Of kind `tool`: the name of the tool that asks to be used …"""
    arguments: Any = None
    """… and its arguments."""
    plan: str | None = None
    """Of kind `plan`: the plan's text (Markdown). A yes lets the engine carry it out."""
    engine: str = CODEX
    """The name of the engine that asks."""

    @property
    def words_choice(self) -> Choice | None:
        """The no that may carry words; none if the engine would not pass them on."""
        return next((c for c in self.choices if c.takes_words and c.grants in ("nothing", "stop")), None)


class Answer(Value, frozen=True):
    """`choice_id` is one of the question's; `values` fills its fields or its schema."""

    choice_id: str
    values: dict[str, Any] = {}
    words: str = ""
    """What the person says with it; only where the choice `takes_words`."""

    def __post_init__(self) -> None:
        # As for `TextPart`: whoever asks could not be answered.
        msgspec.structs.force_setattr(self, "values", whole(self.values))
        msgspec.structs.force_setattr(self, "words", whole_text(self.words))


DECLINE = Answer(choice_id="decline")
"""The answer to every question that gets no valid answer."""


# ── turn events ────────────────────────────────────────────────────────────

Status: TypeAlias = Literal["completed", "failed", "interrupted"]
ActivityStatus: TypeAlias = Literal["running", "completed", "failed", "declined", "interrupted", "detached"]
"""`detached`: the turn is over and this still runs in the background. Its end, if any, is an `Outlived`."""
ActivityKind: TypeAlias = Literal[
    "command",
    "edit",
    "read",
    "mcp",
    "tool",
    "search",
    "image",
    "agent",
    "review",
    "compaction",
    "sleep",
    "other",
]


class TurnStarted(Event, frozen=True, tag="turn_started"):
    turn_id: str
    ticket: str | None = None
    """The request that asked for it; none for a turn that another client started."""


class Accepted(Event, frozen=True, tag="accepted"):
    """The engine has recorded an input: from now on a crash does not lose it."""

    turn_id: str
    item_id: str = ""
    """That of its `UserSaid`."""
    client_id: str | None = None
    """The ticket that the input was sent under, if the engine reports it."""


class UserSaid(Event, frozen=True, tag="user_said"):
    turn_id: str
    item_id: str
    text: str
    content: Any = None
    """The whole input in the engine's own form, including images."""
    client_id: str | None = None
    """As in `Accepted`."""


class Text(Event, frozen=True, tag="text", gc=False):
    turn_id: str
    item_id: str
    text: str


class Thought(Event, frozen=True, tag="thought", gc=False):
    turn_id: str
    item_id: str
    text: str


class Output(Event, frozen=True, tag="output", gc=False):
    """What a running activity prints."""

    turn_id: str
    item_id: str
    text: str


class Activity(Event, frozen=True, tag="activity"):
    """A command, edit or tool call: sent when it starts, when it changes, and once when it ends."""

    turn_id: str
    item_id: str
    kind: ActivityKind
    title: str
    status: ActivityStatus
    input: Any = None
    output: str | None = None
    """At the end: the complete output. `Output` events carried it all but `late_output`."""
    is_cut: bool = False
    """Whether the engine has cut that output, so that it is not complete."""
    late_output: str = ""
    exit_code: int | None = None
    cwd: str | None = None
    content: Any = None
    changes: tuple[FileChange, ...] = ()
    locations: tuple[Location, ...] = ()
    look: Look | None = None
    """Of kind `read`: what is looked at."""
    tool: str | None = None
    """The engine's name of the tool, if that says more than the kind."""
    item: Any = None
    """The engine's own record, for what these fields leave out."""


class Outlived(Event, frozen=True, tag="outlived"):
    """A command that outlived its turn has ended, between turns or during another one.

    It belongs to no turn, and so is no `Activity` itself: a reader of a turn need not handle it.
    """

    activity: Activity
    """As of its own turn, with its true status and its complete output."""
    rest: str = ""
    """The end of its `late_output`: what it printed after the last `Output` event."""


class Plan(Event, frozen=True, tag="plan"):
    turn_id: str
    steps: tuple[PlanStep, ...]
    explanation: str | None = None


class Diff(Event, frozen=True, tag="diff"):
    """All edits of the turn so far, as one unified diff."""

    turn_id: str
    diff: str


class Usage(Event, frozen=True, tag="usage"):
    turn_id: str
    last: Tokens
    total: Tokens
    window: int | None = None
    model: str = ""
    """The model that answered, where the engine says so with its answers."""


class Compacted(Event, frozen=True, tag="compacted"):
    turn_id: str | None


class Notice(Event, frozen=True, tag="notice"):
    level: Literal["info", "warning", "error"]
    message: str
    turn_id: str | None = None
    will_retry: bool = False


class Asked(Event, frozen=True, tag="asked"):
    question: Question


class Withdrawn(Event, frozen=True, tag="withdrawn"):
    """The question needs no answer any more: it has one, or the engine took it back."""

    question_id: str
    is_declined: bool = False
    """Whether it was declined by rule: it timed out, or the session was closed."""


class TurnDone(Event, frozen=True, tag="turn_done"):
    turn_id: str
    status: Status
    first_id: str | None = None
    """The engine's first turn id, where it differs: a review is recorded as two turns."""
    text: str = ""
    """The last message of the turn."""
    failure: Failure | None = None


class Other(Event, frozen=True, tag="other"):
    """What the engine told and the core has no event for."""

    method: str
    params: Any = None
    notice: str = ""
    """A sentence about it for people, where it matters to them."""


class FromSubagent(Event, frozen=True, tag="from_subagent"):
    """An event of a thread that our thread started; kept apart from our own turn."""

    thread_id: str
    parent_id: str
    inner: Event


# ── session events ─────────────────────────────────────────────────────────


class ThreadKnown(Event, frozen=True, tag="thread_known"):
    """The thread has its id: it came with the first turn, or a lost empty thread was started anew."""

    thread_id: str


class Titled(Event, frozen=True, tag="titled"):
    title: str


class SettingsChanged(Event, frozen=True, tag="settings_changed"):
    settings: Any


class EngineGone(Event, frozen=True, tag="engine_gone"):
    """The engine's process has ended; everything in flight has been answered."""

    how: str
    last_words: str = ""
    """The last lines of its standard error, redacted."""


class EngineBack(Event, frozen=True, tag="engine_back"):
    pass


class Closed(Event, frozen=True, tag="closed"):
    """The session is over; no event comes after this."""


DELTAS = (Text, Thought, Output)
"""Events that change no state: they go to the readers' buffers and nowhere else."""


def public(event: Event) -> dict[str, Any]:
    """An event as plain data for people and scripts, without its frame and without empty fields."""
    data: dict[str, Any] = msgspec.to_builtins(event)
    inner = getattr(event, "inner", None)
    if inner is not None:
        data["inner"] = public(inner)
    if isinstance(event, UserSaid):
        del data["content"]  # the text is a field of its own; the rest is images
    if isinstance(event, Outlived):
        # Keeps empty fields: readers that decode the activity again need all required ones.
        data["activity"] = {
            key: value
            for key, value in data["activity"].items()
            if key not in ("frame", "item") and value is not None and not _is_unset(key, value)
        }
    return {
        key: value
        for key, value in data.items()
        if key not in ("frame", "item") and value not in (None, "", [], ()) and not _is_unset(key, value)
    }


def _is_unset(key: str, value: Any) -> bool:
    """Whether a mark that few events carry is not set."""
    return key == "is_cut" and value is False
