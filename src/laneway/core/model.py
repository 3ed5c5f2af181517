"""The vocabulary: what happens in a turn, as values. Engines produce them, doors render them.

Frozen structs (msgspec: five times faster to make than dataclasses, and text deltas are
made by the tens of thousands). Every turn has exactly one `TurnStarted` and exactly one
`TurnDone`, which is last; what outlives a turn is told by `Outlived`. What an engine does not
understand is `Other` and still arrives.

`frame` is the message an event came from, as it stood on the wire. A door may forward
it; nobody parses it again.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what the events are made of."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of all events."""

    frame: bytes = b""


# ── what a turn is made of ─────────────────────────────────────────────────


class Failure(Value, frozen=True):
    """Why a turn failed. `kind` is for programs, `message` for people."""

    kind: str
    message: str
    http_status: int | None = None


class Location(Value, frozen=True):
    path: str
    line: int | None = None


class FileChange(Value, frozen=True):
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


class Choice(Value, frozen=True):
    """One answer a question allows. `grants` tells how far a yes reaches."""

    choice_id: str
    label: str
    grants: Literal["once", "session", "always", "nothing", "stop"]


class Field(Value, frozen=True):
    """One thing the model wants to know from a person."""

    field_id: str
    header: str
    text: str
    options: tuple[str, ...] = ()
    is_secret: bool = False
    allows_other: bool = False


class Question(Value, frozen=True):
    """Somebody must decide. No answer in time means decline."""

    question_id: str
    kind: Literal["command", "patch", "permissions", "input", "elicitation"]
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
    """Whether a yes lets the engine do more than it may by itself; in doubt, it does."""


class Answer(Value, frozen=True):
    """`choice_id` is one of the question's; `values` fills its fields or its schema."""

    choice_id: str
    values: dict[str, Any] = {}


DECLINE = Answer(choice_id="decline")
"""What every question gets when nobody, or nobody who may, answers."""


# ── turn events ────────────────────────────────────────────────────────────

Status: TypeAlias = Literal["completed", "failed", "interrupted"]
ActivityStatus: TypeAlias = Literal["running", "completed", "failed", "declined", "interrupted", "detached"]
"""`detached`: the turn is over and this still runs, in the background. `Outlived` tells its end, if any."""
ActivityKind: TypeAlias = Literal[
    "command", "edit", "mcp", "tool", "search", "image", "agent", "review", "compaction", "sleep", "other"
]


class TurnStarted(Event, frozen=True, tag="turn_started"):
    turn_id: str
    ticket: str | None = None
    """The request that asked for it; none for a turn that somebody else started."""


class Accepted(Event, frozen=True, tag="accepted"):
    """The engine has recorded an input: from here on a crash does not lose it."""

    turn_id: str
    client_id: str | None = None
    """The ticket that the input was sent under, where the engine tells."""


class UserSaid(Event, frozen=True, tag="user_said"):
    turn_id: str
    item_id: str
    text: str
    content: Any = None
    """The whole input in the engine's own form: images, too."""


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
    """The model does something: told when it starts, when it changes, and once when it ends."""

    turn_id: str
    item_id: str
    kind: ActivityKind
    title: str
    status: ActivityStatus
    input: Any = None
    output: str | None = None
    """At the end: the complete output. `Output` events carried it all but `late_output`."""
    late_output: str = ""
    exit_code: int | None = None
    cwd: str | None = None
    content: Any = None
    changes: tuple[FileChange, ...] = ()
    locations: tuple[Location, ...] = ()
    item: Any = None
    """The engine's own record, for what these fields leave out."""


class Outlived(Event, frozen=True, tag="outlived"):
    """A command that its turn left running has ended: told when it comes, between turns or during another.

    Part of no turn, and so no `Activity` by itself: whoever follows a turn need not know it.
    """

    activity: Activity
    """As of its own turn, with its true status and its complete output."""
    rest: str = ""
    """The end of its `late_output`: what it printed behind all that `Output` events carried."""


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
    """The question needs no answer any more: it has one, or Codex took it back."""

    question_id: str
    is_declined: bool = False
    """Whether the rules said no in the place of somebody: too late, or the session was closed."""


class TurnDone(Event, frozen=True, tag="turn_done"):
    turn_id: str
    status: Status
    first_id: str | None = None
    """Where the engine's records begin with another id: a review is kept as two turns."""
    text: str = ""
    """The last message of the turn."""
    failure: Failure | None = None


class Other(Event, frozen=True, tag="other"):
    method: str
    params: Any = None


class FromSubagent(Event, frozen=True, tag="from_subagent"):
    """What happens in a thread that our thread started: never mistaken for our own turn."""

    thread_id: str
    parent_id: str
    inner: Event


# ── session events ─────────────────────────────────────────────────────────


class ThreadKnown(Event, frozen=True, tag="thread_known"):
    """The thread has its id: it came with the first turn, or an empty thread was lost and begun anew."""

    thread_id: str


class Titled(Event, frozen=True, tag="titled"):
    title: str


class SettingsChanged(Event, frozen=True, tag="settings_changed"):
    settings: Any


class EngineGone(Event, frozen=True, tag="engine_gone"):
    """The engine's process ended; everything in flight has been answered."""

    how: str
    last_words: str = ""
    """What it said on standard error: a few lines, redacted."""


class EngineBack(Event, frozen=True, tag="engine_back"):
    pass


class Closed(Event, frozen=True, tag="closed"):
    """The session is over; no event comes after this."""


DELTAS = (Text, Thought, Output)
"""Events that change no state: they go to the readers' buffers and nowhere else."""


def public(event: Event) -> dict[str, Any]:
    """An event as plain data for people and scripts: without the wire, without what is empty."""
    data: dict[str, Any] = msgspec.to_builtins(event)
    inner = getattr(event, "inner", None)
    if inner is not None:
        data["inner"] = public(inner)
    if isinstance(event, UserSaid):
        del data["content"]  # its text is there; the rest is images
    if isinstance(event, Outlived):
        # With what is empty: whoever makes it an event again finds all that an activity must have.
        data["activity"] = {
            key: value
            for key, value in data["activity"].items()
            if key not in ("frame", "item") and value is not None
        }
    return {
        key: value
        for key, value in data.items()
        if key not in ("frame", "item") and value not in (None, "", [], ())
    }
