"""Converts a Discord message to a value: its text, author, and whether it addresses the bot. Pure."""

from __future__ import annotations

import re

import discord
import msgspec

from laneway.doors.chat.platforms.discord.places import ChannelFacts, facts_of

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
FORWARDED = "forwarded from another place on Discord"
MAX_FILES = 10


class SeenFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    url: str
    size: int
    is_image: bool


class SeenMessage(msgspec.Struct, frozen=True, kw_only=True):
    """As far as we use it."""

    message_id: str
    channel: ChannelFacts | None
    """None if only the service knows what channel it is."""
    channel_id: str
    user_id: str
    name: str
    text: str
    is_for_us: bool
    """Whether it mentions the bot, or replies to it."""
    reply_ref: str = ""
    quote: str = ""
    quote_name: str = ""
    origin: str = ""
    files: tuple[SeenFile, ...] = ()
    is_edit: bool = False
    """Whether it was there before, with other words."""


def seen(message: discord.Message, bot_id: int) -> SeenMessage | None:
    """None for what no person has written: other bots, webhooks, notices of Discord's own."""
    is_written = message.type in (discord.MessageType.default, discord.MessageType.reply)
    if message.author.bot or message.webhook_id is not None or not is_written:
        return None
    text, files = message.content, list(message.attachments)
    origin = ""
    for snapshot in message.message_snapshots:
        origin = FORWARDED
        text = f"{text}\n{snapshot.content}".strip()
        files += snapshot.attachments
    reference = message.reference if message.type is discord.MessageType.reply else None
    replied = reference.resolved if reference is not None else None
    has_author = isinstance(replied, discord.Message)
    is_reply_to_us = isinstance(replied, discord.Message) and replied.author.id == bot_id
    quotes = has_author and not is_reply_to_us
    return SeenMessage(
        message_id=str(message.id),
        channel=facts_of(message.channel),
        channel_id=str(message.channel.id),
        user_id=str(message.author.id),
        name=message.author.display_name,
        text=without_mention(text, bot_id),
        is_for_us=is_reply_to_us or any(user.id == bot_id for user in message.mentions),
        reply_ref=str(reference.message_id) if reference is not None and is_reply_to_us else "",
        quote=replied.content if quotes and isinstance(replied, discord.Message) else "",
        quote_name=replied.author.display_name if quotes and isinstance(replied, discord.Message) else "",
        origin=origin,
        files=tuple(_file(file) for file in files[:MAX_FILES]),
    )


def without_mention(text: str, bot_id: int) -> str:
    """The words without the mention that addresses us, which no model needs."""
    stripped = re.sub(rf"^\s*(?:<@!?{bot_id}>\s*)+", "", text)
    return stripped if stripped != text else text


def thread_name(text: str) -> str:
    """For the thread that a message opens: its first words."""
    line = " ".join(text.split())
    return (line[:77] + "…" if len(line) > 78 else line) or "conversation"


def _file(file: discord.Attachment) -> SeenFile:
    kind = (file.content_type or "").split(";")[0].strip().lower()
    return SeenFile(name=file.filename, url=file.url, size=file.size, is_image=kind in IMAGE_TYPES)
