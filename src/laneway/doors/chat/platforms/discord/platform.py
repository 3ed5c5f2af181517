"""`DiscordPlatform`: logs in, shows conversations in threads, and takes what people do there.

A port `ChatPlatform`. Nothing of it is kept outside of `run`; the token is in memory, and in no text.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import discord
import msgspec

from laneway.base.errors import UsageError
from laneway.base.plain import code_label
from laneway.core.ports import Clock
from laneway.doors.chat.outbox import BACKOFF_S
from laneway.doors.chat.platforms.bots.access import BotAccess, Strangers
from laneway.doors.chat.platforms.bots.health import BotHealth
from laneway.doors.chat.platforms.bots.pictures import DiffPictures
from laneway.doors.chat.platforms.bots.place_views import BotPlaceViews
from laneway.doors.chat.platforms.bots.received_files import ReceivedFiles
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.discord.api import ANY_CALL_S, CallPace, DiscordApi, pause
from laneway.doors.chat.platforms.discord.commands import registered
from laneway.doors.chat.platforms.discord.downloads import Downloads
from laneway.doors.chat.platforms.discord.gateway import (
    API_URL,
    GATEWAY_URL,
    GatewayClient,
    GatewayHandlers,
    logs_handed_over,
    use_addresses,
)
from laneway.doors.chat.platforms.discord.intake import DiscordIntake
from laneway.doors.chat.platforms.discord.interactions import DiscordInteractions
from laneway.doors.chat.platforms.discord.private_chats import PrivateChats
from laneway.doors.chat.platforms.discord.writer import NAME, DiscordWriter
from laneway.doors.chat.ports import Chat, ChatCommand

log = logging.getLogger(__name__)

REGISTERED = "discord:commands:"
"""Begins the name of the cursor that says which slash commands were registered last."""
BAD_TOKEN = (
    "Discord refused the token. Make a new one in the developer portal (Bot, “Reset Token”), "
    "and give it to `laneway setup discord` or LANEWAY_DISCORD_TOKEN."
)
NO_INTENT = (
    "Discord refused the connection: switch on “Message Content Intent” for the bot "
    "in the developer portal (Bot, Privileged Gateway Intents), or it cannot read messages."
)

OFFLINE = "Discord cannot be reached. We keep trying."
LOST_S = 20.0
"""Seconds without a connection, after which that is told."""


class DiscordOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Not to be printed: it has the token."""

    token: str
    access: BotAccess
    files: Path
    """A private folder for what people attach."""
    commands: tuple[ChatCommand, ...]
    """The slash commands; those of lanes begin a conversation where there is none."""
    api_url: str = API_URL
    gateway_url: str = GATEWAY_URL
    pictures: DiffPictures | None = None
    """What draws the changes of turns; without it they are shown as text."""

    def __repr__(self) -> str:
        return "DiscordOptions(…)"


class ConnectionHealth:
    """The health line of the connection. One that is soon back is no news: Discord asks for that itself."""

    def __init__(self, line: BotHealth, clock: Clock, *, well: str) -> None:
        self._line, self._clock, self._well = line, clock, well
        self._cancel: Callable[[], None] | None = None

    def back(self) -> None:
        self.close()
        self._line.is_now(self._well, is_well=True)

    def lost(self) -> None:
        if self._cancel is None:
            self._cancel = self._clock.after(LOST_S, self._tell_lost)

    def _tell_lost(self) -> None:
        self._line.is_now(OFFLINE, is_well=False)

    def close(self) -> None:
        if self._cancel is not None:
            self._cancel()
        self._cancel = None


class DiscordLogin(NamedTuple):
    """The bot, logged in, and what carries its calls."""

    session: aiohttp.ClientSession
    client: GatewayClient
    api: DiscordApi
    pace: CallPace
    bot_id: int

    @property
    def bot_name(self) -> str:
        return code_label(self.client.user.name if self.client.user is not None else "", 40)

    async def history(self, channel_id: str, limit: int) -> list[discord.Message]:
        await self.pace.turn()
        return await self.client.latest(channel_id, limit)


class DiscordPlatform:
    def __init__(self, options: DiscordOptions, runtime: BotRuntime) -> None:
        self._options = options
        self._runtime = runtime
        self.views: BotPlaceViews | None = None
        """While it runs; for tests."""
        self.intake: DiscordIntake | None = None

    @property
    def name(self) -> str:
        return NAME

    async def run(self, chat: Chat) -> int:
        """Raises `UsageError` if Discord does not let us in."""
        options = self._options
        use_addresses(options.api_url, options.gateway_url)
        async with (
            aiohttp.ClientSession(trust_env=True) as session,
            GatewayClient(proxy=proxy_for(options.api_url)) as client,
        ):
            with logs_handed_over():
                bot_id = await self._log_in(client)
                pace = CallPace(self._runtime.clock)
                api = DiscordApi(session, options.api_url, options.token, pace)
                return await self._serve(chat, DiscordLogin(session, client, api, pace, bot_id))

    async def _log_in(self, client: GatewayClient) -> int:
        """The bot's id. Waits for a network, and raises `UsageError` for a token that is refused."""
        line = self._runtime.health(NAME)
        for wait_s in itertools.chain(BACKOFF_S, itertools.repeat(BACKOFF_S[-1])):
            try:
                await client.login(self._options.token)
            except discord.LoginFailure:
                raise UsageError(BAD_TOKEN) from None
            except (discord.HTTPException, aiohttp.ClientError, OSError) as problem:
                await client.forget_login()
                log.warning("Discord could not be reached: %s; again in %g s", type(problem).__name__, wait_s)
                line.is_now(OFFLINE, is_well=False)
                await pause(self._runtime.clock, wait_s)
            else:
                break
        assert client.user is not None
        return client.user.id

    async def _serve(self, chat: Chat, login: DiscordLogin) -> int:
        options, runtime = self._options, self._runtime
        health = ConnectionHealth(runtime.health(NAME), runtime.clock, well=f"ready as {login.bot_name}")
        writer = DiscordWriter(login.api, options.access, PrivateChats(runtime.store), options.pictures)
        refused: UsageError | None = None
        async with (
            runtime.place_views(
                chat, writer, options.access, any_call_s=ANY_CALL_S, pictures=options.pictures
            ) as views,
            asyncio.TaskGroup() as tasks,
        ):
            files = await runtime.received_files(options.files)
            strangers = runtime.strangers(NAME)
            intake = self._intake(login, views, writer, strangers, files, tasks)
            interactions = self._interactions(login, chat, views, writer, strangers, tasks)
            self.views, self.intake = views, intake
            await intake.prime(sorted(options.access.chats))
            login.client.hand_to(self._handlers(login, intake, interactions, health))
            try:
                refused = await stay_connected(login.client)
            finally:
                health.close()
                intake.close()
        if refused is not None:
            raise refused
        return 0

    def _intake(
        self,
        login: DiscordLogin,
        views: BotPlaceViews,
        writer: DiscordWriter,
        strangers: Strangers,
        files: ReceivedFiles,
        tasks: asyncio.TaskGroup,
    ) -> DiscordIntake:
        return DiscordIntake(
            views,
            self._runtime.store,
            self._options.access,
            strangers,
            login.api,
            Downloads(login.session, files),
            private=writer.private,
            bot_id=login.bot_id,
            history=login.history,
            clock=self._runtime.clock,
            wall=self._runtime.wall,
            may_show=writer.may_show,
            tasks=tasks,
        )

    def _interactions(
        self,
        login: DiscordLogin,
        chat: Chat,
        views: BotPlaceViews,
        writer: DiscordWriter,
        strangers: Strangers,
        tasks: asyncio.TaskGroup,
    ) -> DiscordInteractions:
        lanes = frozenset(each.name for each in self._options.commands if each.kind == "lane")
        return DiscordInteractions(
            views, chat, self._options.access, strangers, login.api, tasks, lanes, writer.private
        )

    def _handlers(
        self,
        login: DiscordLogin,
        intake: DiscordIntake,
        interactions: DiscordInteractions,
        health: ConnectionHealth,
    ) -> GatewayHandlers:
        async def on_new_session() -> None:
            await intake.catch_up()
            await self._register_commands(login)

        return GatewayHandlers(
            on_message=intake.on_message,
            on_edit=intake.on_edit,
            on_interaction=interactions.on_interaction,
            on_new_session=on_new_session,
            on_lost=health.lost,
            on_back=health.back,
        )

    async def _register_commands(self, login: DiscordLogin) -> None:
        """Only if they are others than last time: Discord allows few such calls in a day."""
        commands = registered(self._options.commands)

        async def register() -> str:
            answer = await login.api.call("PUT", f"/applications/{login.bot_id}/commands", commands)
            return "" if answer.is_done else answer.why

        await self._runtime.register_commands(f"{REGISTERED}{login.bot_id}", commands, register)


async def stay_connected(client: GatewayClient) -> UsageError | None:
    """Until Discord refuses us for good; then why."""
    try:
        await client.connect()
    except discord.PrivilegedIntentsRequired:
        return UsageError(NO_INTENT)
    except discord.ConnectionClosed as closed:
        if closed.code == 4004:
            return UsageError(BAD_TOKEN)
        return UsageError(f"Discord has closed the connection for good (code {closed.code}).")
    return None


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this address."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
