"""What a bot's service tells of people, as values, and what of it becomes an `Incoming`. Pure.

Words of others (forwarded, quoted) are marked as such, so that nobody's words pass for the sender's.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from laneway.base.plain import code_label, plain
from laneway.doors.chat.messages import Incoming, Place, ReplyTarget, Sender
from laneway.doors.chat.platforms.bots.posts import BotPost

MAX_QUOTE_CHARS = 4000
"""Of quoted words: the model can be given more by sending it."""


class BotMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a person who may speak, as the service told it."""

    place: Place
    message_id: str
    user_id: str
    name: str
    text: str = ""
    images: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    """What is not an image; the model is told where they are."""
    reply_ref: str = ""
    """The service's id of the message that it replies to."""
    quote: str = ""
    """Words of another message that it quotes, or that it replies to …"""
    quote_name: str = ""
    """… and whose they are."""
    origin: str = ""
    """`forwarded from …`, for a message that was forwarded."""


class BotTap(msgspec.Struct, frozen=True, kw_only=True):
    """A press of a button."""

    place: Place
    tap_id: str
    """Unique in its place."""
    user_id: str
    name: str
    data: str
    ref: str
    """The service's id of the message that has the button."""
    words: str = ""
    values: dict[str, object] = {}


def incoming(message: BotMessage, sender: Sender, replied: BotPost | None) -> Incoming:
    return Incoming(
        place=message.place,
        message_id=message.message_id,
        sender=sender,
        text=_text(message, is_own_post=replied is not None),
        images=message.images,
        reply=None if replied is None else reply_target(replied),
        origin=message.origin,
    )


def reply_target(post: BotPost) -> ReplyTarget:
    return ReplyTarget(lane=post.lane or None, ticket=post.ticket or None, question=post.question or None)


def _text(message: BotMessage, *, is_own_post: bool) -> str:
    text = message.text
    files = [f"[Attached file: {path}]" for path in message.files]
    is_bare_command = text.startswith("/") and len(text.split(None, 1)) < 2
    quote = message.quote.strip()
    if quote and not is_bare_command:
        who = f" from {code_label(message.quote_name, 60)}" if message.quote_name else ""
        whose = " (a message of this conversation)" if is_own_post else who
        lines = "\n".join(f"> {line}" for line in plain(quote[:MAX_QUOTE_CHARS]).split("\n"))
        text = f"{text}\n\n[Quoted{whose}, not the sender's own words:]\n{lines}"
    return "\n\n".join([part for part in (text, *files) if part])
