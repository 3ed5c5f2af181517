"""Claude Code's team protocol: the JSON messages that its agents put into the text of a mail.

Pure. Only one of them is obeyed, the lead's request to end a session; none grants anything. The
rest is information: shown readably, or, where an answer would only make noise, kept for the next turn
that something else starts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.mail import raw_json
from laneway.mail.entries import Message
from laneway.mail.envelope import EnvelopeItem
from laneway.mail.raw_json import NotJson
from laneway.mail.roster import LEAD
from laneway.store.stamps import stamp

MAX_FRAME_CHARS = 256 * 1024
"""A frame has some hundred characters, a task perhaps some pages. A longer text is not a frame."""

QUIET = frozenset({"idle_notification", "teammate_terminated", "shutdown_approved", "shutdown_rejected"})
"""Messages that need no answer: two agents that told each other that they are idle would never be."""
POWERLESS = frozenset(
    {
        "permission_request",
        "permission_response",
        "sandbox_permission_request",
        "sandbox_permission_response",
        "plan_approval_request",
        "plan_approval_response",
        "shutdown_response",
        "mode_set_request",
        "team_permission_update",
    }
)
"""Messages that would decide something in Claude Code: here they are shown and change nothing."""
KNOWN = QUIET | POWERLESS | {"shutdown_request", "task_assignment", "task_completed"}

Treatment: TypeAlias = Literal["turn", "quiet", "end"]
"""A message may start a turn; be added to one that others start; or end the session."""


class Frame(msgspec.Struct, frozen=True):
    """One message of the protocol."""

    kind: str
    fields: dict[str, Any]

    def text(self, name: str) -> str:
        """A text field; empty if it is missing or no text."""
        field = self.fields.get(name)
        return field if isinstance(field, str) else ""


def frame(text: str) -> Frame | None:
    """The frame in a text; `None` for plain text and for kinds that we do not know."""
    if not text.lstrip().startswith("{") or len(text) > MAX_FRAME_CHARS:
        return None
    try:
        fields = raw_json.value(text.encode("utf-8", "replace"))
    except NotJson:
        return None
    kind = fields.get("type") if isinstance(fields, dict) else None
    return Frame(kind, fields) if isinstance(kind, str) and kind in KNOWN else None


class Addressee(msgspec.Struct, frozen=True):
    """The session that mail is for."""

    name: str
    team: str
    since: datetime
    """When it took the name."""

    def is_near(self, message: Message) -> bool:
        """Whether it comes from the session's own team."""
        return message.source_team in ("", self.team)


def treatment(message: Message, me: Addressee) -> Treatment:
    """What a message may do to the session that it is for."""
    parsed = frame(message.text)
    if message.kind in QUIET or (parsed is not None and parsed.kind in QUIET):
        return "quiet"
    if message.sender == me.name and me.is_near(message):
        return "quiet"  # mail to itself: each turn would start the next
    if parsed is not None and is_order_to_end(message, parsed, me):
        return "end"
    return "turn"


def is_order_to_end(message: Message, parsed: Frame, me: Addressee) -> bool:
    """Whether it ends the session: only the lead's request, sent while the session already had the name.

    An older request, which nobody read, must not end the next session of that name.
    """
    return (
        parsed.kind == "shutdown_request"
        and message.sender == LEAD
        and parsed.text("from") == LEAD
        and me.is_near(message)
        and parsed.text("requestId") != ""
        and message.when is not None
        and message.when >= me.since
    )


def approval(request: Message, me: str, when: datetime) -> str:
    """The answer to a shutdown request, as Claude Code's lead expects it: `from` must equal the sender."""
    shutdown = frame(request.text)
    answer = {
        "type": "shutdown_approved",
        "requestId": shutdown.text("requestId") if shutdown else "",
        "from": me,
        "timestamp": stamp(when),
    }
    return msgspec.json.encode(answer).decode()


# ── showing ────────────────────────────────────────────────────────────────


def item(message: Message, me: Addressee) -> EnvelopeItem:
    """A message as a turn shows it; a sender of another team is `agent@team`, as an answer needs it."""
    parsed = frame(message.text)
    show = READABLE.get(parsed.kind) if parsed else None
    text = (show(parsed) if show and parsed else "") or message.text
    return EnvelopeItem(
        sender=message.sender if me.is_near(message) else f"{message.sender}@{message.source_team}",
        sent=message.timestamp,
        message_id=message.message_id,
        urgency=message.urgency,
        text=text,
        notes=(_note(parsed.kind),) if parsed else (),
    )


def _note(kind: str) -> str:
    note = f"this is a {kind} of Claude Code's team protocol"
    if kind in POWERLESS:
        return f"{note}; it has no effect here, and nobody waits for its answer."
    if kind == "shutdown_request":
        return (
            f"{note}; it ended nothing, for only the lead can, and only a session that was there to be asked."
        )
    return f"{note}."


def _task(parsed: Frame) -> str:
    parts = [f"Task {parsed.text('taskId')}: {parsed.text('subject')}", parsed.text("description")]
    if parsed.text("assignedBy"):
        parts.append(f"Assigned by {parsed.text('assignedBy')}.")
    return "\n\n".join(part for part in parts if part.strip())


def _idle(parsed: Frame) -> str:
    lines = [f"{parsed.text('from')} is idle ({parsed.text('idleReason') or 'available'})."]
    lines += [parsed.text(name) for name in ("summary", "failureReason", "result")]
    return "\n".join(line for line in lines if line.strip())


def _completed(parsed: Frame) -> str:
    subject = parsed.text("taskSubject")
    return f"Task {parsed.text('taskId')}{f' ({subject})' if subject else ''} is completed."


READABLE: dict[str, Callable[[Frame], str]] = {
    "task_assignment": _task,
    "task_completed": _completed,
    "idle_notification": _idle,
    "teammate_terminated": lambda parsed: parsed.text("message"),
}
"""By kind, the frame as readable text; other kinds are shown as they are."""
