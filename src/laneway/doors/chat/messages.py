"""What people send to a conversation, as values: messages and taps on buttons, with their place and sender.

A platform makes these from what its service tells it; `laneway.doors.chat.service` takes them. Only what
the platform has checked gets here: who is not allowed to speak is turned away before.
"""

from __future__ import annotations

from pathlib import Path

import msgspec


class Place(msgspec.Struct, frozen=True):
    """Where a conversation is shown on a platform: a chat, a topic of it, a terminal, a browser."""

    platform: str
    """`terminal`, `web`, `telegram` or `discord`."""
    chat: str
    topic: str = ""

    @property
    def key(self) -> str:
        """As one text, for the store."""
        return ":".join(part for part in (self.platform, self.chat, self.topic) if part)


class Sender(msgspec.Struct, frozen=True, kw_only=True):
    """Who sent it. Ids are the platform's own."""

    platform: str
    user_id: str
    name: str
    """Chosen by its bearer: never used to decide anything, and made harmless before it is shown."""
    is_owner: bool = False
    """Whether approvals take this sender's word."""


class ReplyTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What of the conversation a message is a reply to, as far as its platform remembers."""

    lane: str | None = None
    """Whose message it was; none for one of Laneway's or of a person."""
    ticket: str | None = None
    """The turn that the message was part of."""
    question: int | None = None
    """The number of the question that was replied to."""


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a person."""

    place: Place
    message_id: str
    """The platform's own, unique in its place. A message that comes twice is taken once."""
    sender: Sender
    text: str = ""
    images: tuple[Path, ...] = ()
    reply: ReplyTarget | None = None
    origin: str = ""
    """Whose words these are, if not the sender's: `forwarded from …`. Shown to the model as such."""
    conversation_id: str | None = None
    """The conversation, where the place shows several; else it is the place's own."""


class Tap(msgspec.Struct, frozen=True, kw_only=True):
    """A press of a button that a conversation has shown (`laneway.doors.chat.outputs.Button`)."""

    place: Place
    sender: Sender
    data: str
    """The button's own."""
    words: str = ""
    """What was typed with it, in a form or a dialog."""
    values: dict[str, object] = {}
    """What was filled in, by field, where the platform has forms."""
    conversation_id: str | None = None


class TapResult(msgspec.Struct, frozen=True):
    """What to tell whoever pressed the button."""

    text: str
    is_done: bool = True
    """Whether the press took effect; if not, the text says why."""
    is_stale: bool = False
    """Whether the button can never work again, so that the platform should remove it."""
