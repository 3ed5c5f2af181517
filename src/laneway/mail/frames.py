"""Claude Code's own messages between its agents: JSON inside the text of a mail, and what we do about it.

Pure. Only one of them is obeyed, the lead's request to end a session; none grants anything. The
rest is news: shown readably, or, where an answer would only make noise, kept for the next turn
that something else starts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.mail import raw_json
from laneway.mail.entries import Message
from laneway.mail.envelope import Item
from laneway.mail.raw_json import NotJson
from laneway.mail.roster import LEAD
from laneway.store.stamps import stamp

MAX_FRAME_CHARS = 256 * 1024
"""A frame is some hundred characters, a task perhaps some pages. More is a text that looks like one."""

QUIET = frozenset({"idle_notification", "teammate_terminated", "shutdown_approved", "shutdown_rejected"})
"""News that wants no answer: two agents that told each other that they are idle would never be."""
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
"""Would decide something if we let them: they are shown as what they are and change nothing."""
KNOWN = QUIET | POWERLESS | {"shutdown_request", "task_assignment", "task_completed"}

Treatment: TypeAlias = Literal["turn", "quiet", "end"]
"""It may start a turn; it comes along with one; it ends the session."""


class Frame(msgspec.Struct, frozen=True):
    kind: str
    fields: dict[str, Any]

    def text(self, name: str) -> str:
        """A field that is a text, else nothing."""
        found = self.fields.get(name)
        return found if isinstance(found, str) else ""


def frame(text: str) -> Frame | None:
    """The frame that a text is; `None` for plain words and for what we do not know."""
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
    found = frame(message.text)
    if message.kind in QUIET or (found is not None and found.kind in QUIET):
        return "quiet"
    if message.sender == me.name and me.is_near(message):
        return "quiet"  # it talks to itself, and would go on
    if found is not None and is_order_to_end(message, found, me):
        return "end"
    return "turn"


def is_order_to_end(message: Message, found: Frame, me: Addressee) -> bool:
    """Only the lead's own, and only to the session that was there when it was sent.

    One that nobody was there to read must not end whoever takes the name next.
    """
    return (
        found.kind == "shutdown_request"
        and message.sender == LEAD
        and found.text("from") == LEAD
        and me.is_near(message)
        and found.text("requestId") != ""
        and message.when is not None
        and message.when >= me.since
    )


def approval(request: Message, me: str, when: datetime) -> str:
    """The answer to an order to end, as Claude Code's lead wants it: the names inside and outside agree."""
    asked = frame(request.text)
    answer = {
        "type": "shutdown_approved",
        "requestId": asked.text("requestId") if asked else "",
        "from": me,
        "timestamp": stamp(when),
    }
    return msgspec.json.encode(answer).decode()


# ── showing ────────────────────────────────────────────────────────────────


def item(message: Message, me: Addressee) -> Item:
    """A message as a turn shows it; who is of another team is named with it, as an answer needs it."""
    found = frame(message.text)
    show = SHOWN.get(found.kind) if found else None
    text = (show(found) if show and found else "") or message.text
    return Item(
        sender=message.sender if me.is_near(message) else f"{message.sender}@{message.source_team}",
        sent=message.timestamp,
        message_id=message.message_id,
        urgency=message.urgency,
        text=text,
        notes=(_note(found.kind),) if found else (),
    )


def _note(kind: str) -> str:
    said = f"this is a {kind} of Claude Code's team protocol"
    if kind in POWERLESS:
        return f"{said}; it has no effect here, and nobody waits for its answer."
    if kind == "shutdown_request":
        return (
            f"{said}; it ended nothing, for only the lead can, and only a session that was there to be asked."
        )
    return f"{said}."


def _task(found: Frame) -> str:
    parts = [f"Task {found.text('taskId')}: {found.text('subject')}", found.text("description")]
    if found.text("assignedBy"):
        parts.append(f"Assigned by {found.text('assignedBy')}.")
    return "\n\n".join(part for part in parts if part.strip())


def _idle(found: Frame) -> str:
    said = [f"{found.text('from')} is idle ({found.text('idleReason') or 'available'})."]
    said += [found.text(name) for name in ("summary", "failureReason", "result")]
    return "\n".join(part for part in said if part.strip())


def _completed(found: Frame) -> str:
    subject = found.text("taskSubject")
    return f"Task {found.text('taskId')}{f' ({subject})' if subject else ''} is completed."


SHOWN: dict[str, Callable[[Frame], str]] = {
    "task_assignment": _task,
    "task_completed": _completed,
    "idle_notification": _idle,
    "teammate_terminated": lambda found: found.text("message"),
}
"""What people would write instead; the others are shown as they are."""
