"""An outgoing message: checked once, then written as an inbox entry.

Pure. The entry is one that Claude Code, ATM 0.46 and ATM 1.x can all read; where they expect an
id under different names, each gets the same one.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from laneway.base.errors import BadMail
from laneway.base.plain import plain
from laneway.mail import raw_json
from laneway.mail.entries import ENTRY_DEPTH, Urgency
from laneway.mail.names import check_sender, check_team
from laneway.store import stamps

MAX_TEXT_BYTES = 1024 * 1024
"""ATM's limit; it refuses to read more."""
MAX_SUMMARY_CHARS = 100
"""ATM's, and what Claude Code shows in one line."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Draft(msgspec.Struct, frozen=True):
    """A checked message, made by `draft`; stored in the spool as it is."""

    sender: str
    text: str
    summary: str
    source_team: str
    message_id: str
    when: datetime
    urgency: Urgency = "normal"

    @property
    def marks(self) -> tuple[str, str]:
        """Ends of ids by which it is found in an inbox: its id, and its ULID without the time in front."""
        return self.message_id, ulid(self.when, self.message_id)[10:]

    def entry(self, when: datetime) -> bytes:
        """The inbox entry, sent at this time. Never with a null: Claude Code drops entries that have one."""
        metadata: dict[str, Any] = {
            "atm": {"messageId": ulid(when, self.message_id), "sourceTeam": self.source_team}
        }
        if self.urgency != "normal":
            metadata["laneway"] = {"priority": self.urgency}
        entry = {
            "from": self.sender,
            "text": self.text,
            "timestamp": stamps.stamp(when),
            "read": False,
            "summary": self.summary,
            "type": "message",
            "msgV": 1,
            "msg_id": self.message_id,
            "message_id": self.message_id,
            "source_team": self.source_team,
            "metadata": metadata,
        }
        return raw_json.pretty(entry, ENTRY_DEPTH)


def draft(
    sender: str,
    text: str,
    *,
    team: str,
    summary: str = "",
    urgency: Urgency = "normal",
    message_id: str = "",
    when: datetime | None = None,
) -> Draft:
    """A message of a sender who is in `team`; `BadMail` or `BadName` if it cannot be sent."""
    return Draft(
        sender=check_sender(sender),
        text=_checked(text),
        summary=_short(summary if summary.strip() else text),
        source_team=check_team(team),
        message_id=message_id or str(uuid.uuid4()),
        when=when or stamps.utc_now(),
        urgency=urgency,
    )


def ulid(when: datetime, message_id: str) -> str:
    """ATM 1.x's id: the time, followed by the random part of the message's own id."""
    number = ((when - EPOCH) // timedelta(milliseconds=1) << 80) | (uuid.UUID(message_id).int & (1 << 80) - 1)
    return "".join(CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def _checked(text: str) -> str:
    if not text.strip():
        raise BadMail("The message is empty. Write something.")
    if "\0" in text:
        raise BadMail("The message has a NUL character, which no mail program takes. Leave it out.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadMail("The message has characters that are no text. Leave them out.") from None
    if size > MAX_TEXT_BYTES:
        raise BadMail(
            f"The message has {size} bytes and {MAX_TEXT_BYTES} are allowed. "
            "Put it into a file and send its path."
        )
    return text


def _short(text: str) -> str:
    """One line, cut after a word."""
    line = " ".join(plain(text[: 4 * MAX_SUMMARY_CHARS]).split())
    if len(line) <= MAX_SUMMARY_CHARS:
        return line
    cut = line[: MAX_SUMMARY_CHARS - 3]
    return (cut.rpartition(" ")[0] or cut) + "..."
