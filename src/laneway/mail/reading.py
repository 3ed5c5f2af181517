"""Selects and renders the messages of an inbox for a reader (`atm_read`). Pure.

Unread mail comes in the order of delivery, so that what does not fit comes next time. When read mail is
included, people want the newest: then the oldest are left out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from laneway.mail.entries import BEGINNING, Mail, Message, in_order

MAX_TEXT_CHARS = 4096
"""Of one message among others; the whole is read by its `message_id`."""


class MailQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages a reader asks for."""

    include_read: bool = False
    limit: int | None = None
    since: datetime | None = None
    """Only later ones. A message with an unreadable time is included."""
    sender: str | None = None
    """`agent` or `agent@team`."""


class MailPage(msgspec.Struct, frozen=True):
    """The messages that fit into one answer."""

    messages: tuple[Message, ...] = ()
    left: int = 0
    """How many more match and do not fit."""


def page(
    mail: Mail, query: MailQuery, total_chars: int | None = None, max_chars: int | None = MAX_TEXT_CHARS
) -> MailPage:
    """What fits, at least one message. `total_chars` is for all texts together, each cut at `max_chars`."""
    matching = [message for message in mail.messages if _matches(message, query)]
    ordered = _newest_first(matching) if query.include_read else in_order(matching)
    taken: list[Message] = []
    remaining_chars = total_chars
    for message in ordered[: query.limit]:
        if remaining_chars is not None and total_chars is not None:
            remaining_chars -= len(shortened(message, max_chars))
            if taken and remaining_chars < 0:
                break
        taken.append(message)
    left = len(ordered) - len(taken)
    return MailPage(tuple(reversed(taken) if query.include_read else taken), left)


def by_id(mail: Mail, message_id: str) -> Message | None:
    """The message with this id, whichever of the three programs gave it."""
    for message in mail.messages:
        if message.message_id == message_id:
            return message
    # Ids that only one program uses need a search of every entry.
    return next((m for m in mail.messages if message_id in _other_ids(m.fields)), None)


def shortened(message: Message, max_chars: int | None = MAX_TEXT_CHARS) -> str:
    """The text, cut if it is long and the message has an id to read the rest by."""
    if max_chars is None or len(message.text) <= max_chars or not message.message_id:
        return message.text
    return (
        f"{message.text[:max_chars]}\n[Cut: {max_chars} of {len(message.text)} characters. "
        f"atm_read with message_id {message.message_id} gives all.]"
    )


def row(message: Message, text: str) -> dict[str, Any]:
    """A message as JSON. Its text is under `message`, as `atm-agent-mcp` has it, and `text`, as files do."""
    row_json: dict[str, Any] = {
        "from": message.sender,
        "message": text,
        "text": text,
        "timestamp": message.timestamp,
        "message_id": message.message_id,
        "read": message.is_read,
    }
    if message.summary:
        row_json["summary"] = message.summary
    if message.source_team:
        row_json["source_team"] = message.source_team
    if message.urgency != "normal":
        row_json["priority"] = message.urgency
    if text != message.text:
        row_json["length"] = len(message.text)
    return row_json


def _matches(message: Message, query: MailQuery) -> bool:
    if message.is_read and not query.include_read:
        return False
    if query.since is not None and message.when is not None and message.when <= query.since:
        return False
    return query.sender in (None, message.sender, f"{message.sender}@{message.source_team}")


def _newest_first(messages: list[Message]) -> tuple[Message, ...]:
    times: list[datetime] = []
    for message in messages:
        times.append(message.when or (times[-1] if times else BEGINNING))
    order = sorted(range(len(messages)), key=lambda place: (times[place], place), reverse=True)
    return tuple(messages[place] for place in order)


def _other_ids(fields: dict[str, Any]) -> tuple[Any, ...]:
    metadata = fields.get("metadata")
    atm = metadata.get("atm") if isinstance(metadata, dict) else None
    return (fields.get("msg_id"), atm.get("messageId") if isinstance(atm, dict) else None)
