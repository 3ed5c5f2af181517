"""Which messages of an inbox somebody gets who asks for them, and how they look. Pure.

Unread mail comes in the order of delivery, so that what does not fit comes next time. With what is
read already, the newest is what people ask for: there the oldest are left out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from laneway.mail.entries import BEGINNING, Mail, Message, in_order

MAX_TEXT_CHARS = 4096
"""Of one message among others; its `message_id` leads to all of it."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    include_read: bool = False
    limit: int | None = None
    since: datetime | None = None
    """Only what is later. A message whose time nobody can read is not hidden by that."""
    sender: str | None = None
    """`agent` or `agent@team`."""


class Page(msgspec.Struct, frozen=True):
    messages: tuple[Message, ...] = ()
    left: int = 0
    """Messages that were asked for and do not fit."""


def page(
    mail: Mail, wanted: Wanted, room_chars: int | None = None, max_chars: int | None = MAX_TEXT_CHARS
) -> Page:
    """What fits, at least one. `room_chars` is for all texts together, each cut as it is shown."""
    found = [message for message in mail.messages if _is_wanted(message, wanted)]
    ordered = _newest_first(found) if wanted.include_read else in_order(found)
    taken: list[Message] = []
    room = room_chars
    for message in ordered[: wanted.limit]:
        if room is not None and room_chars is not None:
            room -= len(shown(message, max_chars))
            if taken and room < 0:
                break
        taken.append(message)
    left = len(ordered) - len(taken)
    return Page(tuple(reversed(taken) if wanted.include_read else taken), left)


def by_id(mail: Mail, message_id: str) -> Message | None:
    """The message that goes by this id in any of the three programs."""
    for message in mail.messages:
        if message.message_id == message_id:
            return message
    # Ids that only one program knows cost a look into every entry.
    return next((m for m in mail.messages if message_id in _other_ids(m.fields)), None)


def shown(message: Message, max_chars: int | None = MAX_TEXT_CHARS) -> str:
    """The text, cut where it is long and somebody could ask for the rest."""
    if max_chars is None or len(message.text) <= max_chars or not message.message_id:
        return message.text
    return (
        f"{message.text[:max_chars]}\n[Cut: {max_chars} of {len(message.text)} characters. "
        f"atm_read with message_id {message.message_id} gives all.]"
    )


def row(message: Message, text: str) -> dict[str, Any]:
    """A message for programs: `message` is what the seed calls its text, `text` what the files do."""
    told: dict[str, Any] = {
        "from": message.sender,
        "message": text,
        "text": text,
        "timestamp": message.timestamp,
        "message_id": message.message_id,
        "read": message.is_read,
    }
    if message.summary:
        told["summary"] = message.summary
    if message.source_team:
        told["source_team"] = message.source_team
    if message.urgency != "normal":
        told["priority"] = message.urgency
    if text != message.text:
        told["length"] = len(message.text)
    return told


def _is_wanted(message: Message, wanted: Wanted) -> bool:
    if message.is_read and not wanted.include_read:
        return False
    if wanted.since is not None and message.when is not None and message.when <= wanted.since:
        return False
    return wanted.sender in (None, message.sender, f"{message.sender}@{message.source_team}")


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
