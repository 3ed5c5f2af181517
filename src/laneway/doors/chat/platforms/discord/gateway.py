"""`GatewayClient`: discord.py's connection to Discord, which resumes by itself, and what it hands on.

discord.py has one address for all of a process; `use_addresses` sets it. Its log lines become ours, so that
they are redacted and go where ours go.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import discord
import msgspec
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

log = logging.getLogger(__name__)

API_URL = "https://discord.com/api/v10"
GATEWAY_URL = "wss://gateway.discord.gg/"


class GatewayHandlers(msgspec.Struct, frozen=True, kw_only=True):
    on_message: Callable[[discord.Message], None]
    on_interaction: Callable[[discord.Interaction], None]
    on_new_session: Callable[[], Awaitable[None]]
    """Events may have been missed before it."""
    on_lost: Callable[[], None]
    """The connection has ended; discord.py makes another one."""
    on_back: Callable[[], None]
    """There is a connection."""
    on_edit: Callable[[discord.Message], None] = lambda message: None
    """Somebody has changed the words of a message."""


class GatewayClient(discord.Client):
    """Asks for messages and their words, and for nothing else. Nothing is cached but guilds and threads."""

    def __init__(self, *, proxy: str | None = None) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = intents.message_content = True
        super().__init__(
            intents=intents,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=0.1,
            allowed_mentions=discord.AllowedMentions.none(),
            proxy=proxy,
        )
        self._hands: GatewayHandlers | None = None

    def hand_to(self, handlers: GatewayHandlers) -> None:
        """To be called before the connection is made."""
        self._hands = handlers

    async def on_connect(self) -> None:
        if self._hands is not None:
            self._hands.on_back()
            await self._hands.on_new_session()

    async def on_resumed(self) -> None:
        if self._hands is not None:
            self._hands.on_back()

    async def on_disconnect(self) -> None:
        if self._hands is not None:
            self._hands.on_lost()

    async def on_message(self, message: discord.Message) -> None:
        if self._hands is not None:
            self._hands.on_message(message)

    async def on_raw_message_edit(self, edit: discord.RawMessageUpdateEvent) -> None:
        # Without a time nobody has changed it: a link was looked at, or a message was pinned.
        if self._hands is not None and edit.message.edited_at is not None:
            self._hands.on_edit(edit.message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        if self._hands is not None:
            self._hands.on_interaction(interaction)

    async def forget_login(self) -> None:
        """After one that failed: discord.py would go on with the connections that were closed."""
        await self.http.close()
        self.http.connector = discord.utils.MISSING

    async def latest(self, channel_id: str, limit: int) -> list[discord.Message]:
        """The newest messages of a channel, the oldest of them first. Raises `discord.HTTPException`."""
        channel = self.get_partial_messageable(int(channel_id))
        found = [message async for message in channel.history(limit=limit)]
        return found[::-1]


def use_addresses(api_url: str, gateway_url: str) -> None:
    Route.BASE = api_url.rstrip("/")
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)
    discord.VoiceClient.warn_nacl = False
    discord.VoiceClient.warn_dave = False


class _Handover(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if log.isEnabledFor(record.levelno):
            log.handle(record)


@contextmanager
def logs_handed_over() -> Iterator[None]:
    """discord.py's warnings and errors become lines of our log."""
    theirs = logging.getLogger("discord")
    handler, before = _Handover(), (theirs.propagate, theirs.level)
    theirs.addHandler(handler)
    theirs.propagate = False
    theirs.setLevel(logging.WARNING)
    try:
        yield
    finally:
        theirs.removeHandler(handler)
        theirs.propagate, theirs.level = before
