"""What a bot posts, as values: `BotPost` with a stable key, and how it is kept in the store.

A second post with the same key changes the first one in place. Posts that must arrive are stored before
they are sent (`is_stored`); the others may get lost, and are replaced by later ones.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec

from laneway.doors.chat.messages import Place
from laneway.doors.chat.outbox import ChatPace, PostOutcome
from laneway.doors.chat.outputs import Button
from laneway.doors.chat.splitting import Measure

STOP_DATA = "bot:stop"
"""The data of our own Stop button; those of conversations never begin with `bot:`."""
STOP = Button(data=STOP_DATA, label="⏹ Stop", style="no")

PostKind: TypeAlias = Literal[
    "text", "work", "plan", "banner", "question", "receipt", "told", "diff", "gallery", "file", "unbutton"
]
"""A lane's words; what it does; its plan; the frame of a turn; a question; what became of a message, as a
reaction to it; words of Laneway or of other people; a turn's edits as text, or as pictures; a file; a
message that loses its buttons."""


class BotPost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as it should look from now on."""

    key: str
    """Names it in its place."""
    kind: PostKind
    conversation_id: str
    text: str = ""
    """Markdown, with hidden characters shown, and foreign code fenced."""
    buttons: tuple[Button, ...] = ()
    dialogs: tuple[Button, ...] = ()
    """Buttons that take words or the values of a form with them, for platforms that can ask for these."""
    is_stored: bool = True
    is_partial: bool = False
    """Whether more of this text will follow soon."""
    lane: str = ""
    ticket: str = ""
    question: int = 0
    """The number of the question that it asks."""
    for_owners: bool = False
    """Whether only owners may press its buttons."""
    asked_by: str = ""
    """The user id of whoever started the turn that asks."""
    target: str = ""
    """The service's id of the message that it reacts or replies to, or that loses its buttons."""
    receipt: str = ""
    """Of kind `receipt`: as in `InputReceipt.kind`."""
    path: str = ""
    """Of kind `file`: read when it is sent."""
    name: str = ""
    """Of a file, as people see it."""
    body: str = ""
    """A file's content, instead of a path."""
    diff: str = ""
    """Of kinds `diff` and `gallery`: the unified diff."""


class PostLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a service takes in one message."""

    units: int
    measure: Measure
    max_messages: int = 5
    """Of one text; a longer one becomes a file with its head and its tail as messages."""


class BotWriter(Protocol):
    """What the shared part needs of a service."""

    @property
    def name(self) -> str:
        """As in `Place.platform`."""
        ...

    @property
    def limits(self) -> PostLimits: ...

    def rate_key(self, place: Place) -> str:
        """What the service counts rates by: the chat, without its topic."""
        ...

    def pace(self, place: Place) -> ChatPace: ...

    def may_show(self, place: Place) -> bool:
        """Whether the settings still allow it: a place of an earlier process may not be allowed any more."""
        ...

    async def deliver(self, place: Place, post: BotPost, ref: str) -> PostOutcome:
        """Send it, or with a `ref` change that message; one call to the service, or a few if it is refused.

        Raises nothing.
        """
        ...


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(BotPost)


def encode_post(post: BotPost) -> bytes:
    return _encoder.encode(post)


def decode_post(content: bytes) -> BotPost | None:
    """None for one of another version: it is left as it is."""
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
