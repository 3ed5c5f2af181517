"""Sets up a Discord bot: checks its token, finds its owner by a code, sends a test message.

For `laneway setup discord`, which asks the questions and writes the settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import aiohttp
import discord
import msgspec

from laneway.base.errors import UsageError
from laneway.base.plain import code_label
from laneway.doors.chat.platforms.discord.api import NO_MENTIONS, DiscordAnswer, DiscordApi
from laneway.doors.chat.platforms.discord.gateway import (
    API_URL,
    GATEWAY_URL,
    GatewayClient,
    GatewayHandlers,
    logs_handed_over,
    use_addresses,
)
from laneway.doors.chat.platforms.discord.incoming_message import seen
from laneway.doors.chat.platforms.discord.places import facts_of
from laneway.doors.chat.platforms.discord.platform import BAD_TOKEN, proxy_for, stay_connected

INVITE = "https://discord.com/oauth2/authorize"
RIGHTS = (
    discord.Permissions(
        view_channel=True,
        send_messages=True,
        send_messages_in_threads=True,
        create_public_threads=True,
        read_message_history=True,
        add_reactions=True,
        attach_files=True,
    )
).value
"""What the bot needs in its channels."""
READS_WORDS = 1 << 18 | 1 << 19
"""Flags of an application whose Message Content Intent is on."""


class DiscordBot(msgspec.Struct, frozen=True, kw_only=True):
    """What its token says of a bot."""

    bot_id: int
    name: str
    application_id: str
    reads_words: bool
    """Whether its Message Content Intent is on: else it cannot read what people write."""

    @property
    def invite_url(self) -> str:
        """Where its owner adds it to a server."""
        asks = {"client_id": self.application_id, "scope": "bot applications.commands", "permissions": RIGHTS}
        return f"{INVITE}?{urlencode(asks)}"


class DiscordNewcomer(msgspec.Struct, frozen=True, kw_only=True):
    """Who has typed the code, and where."""

    user_id: str
    name: str
    channel_id: str
    chat_id: str
    """The channel as `allowed_chats` lists it; empty for a private chat."""


class DiscordIntroduction:
    """Made by `introduced`. Nothing of it outlives that."""

    def __init__(self, bot: DiscordBot, api: DiscordApi, client: GatewayClient) -> None:
        self.bot = bot
        self._api, self._client = api, client

    async def wait_for(self, code: str) -> DiscordNewcomer:
        """The first person who writes the code to the bot: in private, or in a channel that it sees.

        Waits for ever. Raises `UsageError` if Discord does not let us in.
        """
        found: asyncio.Future[DiscordNewcomer] = asyncio.get_running_loop().create_future()

        def look(message: discord.Message) -> None:
            said = seen(message, self.bot.bot_id)
            facts = facts_of(message.channel)
            if said is None or facts is None or code not in said.text.split() or found.done():
                return
            newcomer = DiscordNewcomer(
                user_id=said.user_id,
                name=code_label(said.name, 40),
                channel_id=facts.channel_id,
                chat_id="" if facts.kind == "private" else facts.chat_id,
            )
            found.set_result(newcomer)

        async def nothing() -> None:
            """There is nothing to catch up with."""

        self._client.hand_to(
            GatewayHandlers(
                on_message=look,
                on_interaction=lambda _: None,
                on_new_session=nothing,
                on_lost=lambda: None,
                on_back=lambda: None,
            )
        )
        connected = asyncio.create_task(stay_connected(self._client))
        try:
            futures: set[asyncio.Future[Any]] = {connected, found}
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if found.done():
                return found.result()
            raise connected.result() or UsageError("Discord has closed the connection.")
        finally:
            connected.cancel()
            await asyncio.gather(connected, return_exceptions=True)

    async def prove(self, newcomer: DiscordNewcomer, text: str) -> str:
        """Send it to where the code was typed. Returns why that is not possible; empty if it was."""
        body = {"content": text, "allowed_mentions": NO_MENTIONS}
        answer = await self._api.call("POST", f"/channels/{newcomer.channel_id}/messages", body)
        return "" if answer.is_done else code_label(answer.why, 120)


@asynccontextmanager
async def introduced(
    token: str, *, api_url: str = API_URL, gateway_url: str = GATEWAY_URL
) -> AsyncIterator[DiscordIntroduction]:
    """Raises `UsageError` for a token that is refused, and if Discord cannot be reached."""
    use_addresses(api_url, gateway_url)
    async with (
        aiohttp.ClientSession(trust_env=True) as session,
        GatewayClient(proxy=proxy_for(api_url)) as client,
    ):
        with logs_handed_over():
            api = DiscordApi(session, api_url, token)
            bot = await look_up(api)
            try:
                await client.login(token)
            except (discord.DiscordException, aiohttp.ClientError, OSError) as problem:
                raise UsageError(f"Discord could not be reached: {type(problem).__name__}.") from None
            yield DiscordIntroduction(bot, api, client)


async def look_up(api: DiscordApi) -> DiscordBot:
    """What Discord says of the token's bot. Raises `UsageError`."""
    user, application = [await _asked(api, path) for path in ("/users/@me", "/applications/@me")]
    flags = application.get("flags")
    return DiscordBot(
        bot_id=int(user["id"]),
        name=code_label(str(user.get("username", "")), 40),
        application_id=str(application["id"]),
        reads_words=isinstance(flags, int) and bool(flags & READS_WORDS),
    )


async def _asked(api: DiscordApi, path: str) -> dict[str, Any]:
    answer: DiscordAnswer = await api.call("GET", path)
    if answer.status == 401:
        raise UsageError(BAD_TOKEN)
    if not answer.is_done or not isinstance(answer.body, dict) or "id" not in answer.body:
        raise UsageError(f"Discord could not be asked: {code_label(answer.why, 120)}.")
    return answer.body
