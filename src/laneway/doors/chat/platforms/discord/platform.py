"""`DiscordPlatform`: logs in, shows conversations in threads, and takes what people do there.

A port `ChatPlatform`. Nothing of it is kept outside of `run`; the token is in memory, and in no text.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import discord
import msgspec

from laneway.base.clock import LoopClock
from laneway.base.errors import StoreError, UsageError
from laneway.base.plain import code_label
from laneway.core.conversations import ConversationStore
from laneway.core.ports import Clock
from laneway.doors.chat.outbox import BACKOFF_S
from laneway.doors.chat.platforms.bots.access import BotAccess, Strangers
from laneway.doors.chat.platforms.bots.health import BotHealth
from laneway.doors.chat.platforms.bots.pictures import DiffPictures
from laneway.doors.chat.platforms.bots.place_views import BotPlaceViews, open_place_views
from laneway.doors.chat.platforms.bots.received_files import ReceivedFiles
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


def tell_on_stderr(line: str) -> None:
    sys.stderr.write(f"laneway: {line}\n")
    sys.stderr.flush()


class DiscordPlatform:
    def __init__(
        self,
        options: DiscordOptions,
        store: ConversationStore,
        *,
        clock: Clock | None = None,
        wall: Callable[[], float] = time.time,
        tell: Callable[[str], None] = tell_on_stderr,
    ) -> None:
        self._options = options
        self._store = store
        self._clock = clock or LoopClock()
        self._wall = wall
        self._tell = tell
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
                pace = CallPace(self._clock)
                api = DiscordApi(session, options.api_url, options.token, pace)
                return await self._serve(chat, api, session, client, bot_id, pace)

    async def _log_in(self, client: GatewayClient) -> int:
        """The bot's id. Waits for a network, and raises `UsageError` for a token that is refused."""
        line = BotHealth(NAME, self._store, self._tell, self._wall)
        for wait_s in itertools.chain(BACKOFF_S, itertools.repeat(BACKOFF_S[-1])):
            try:
                await client.login(self._options.token)
            except discord.LoginFailure:
                raise UsageError(BAD_TOKEN) from None
            except (discord.HTTPException, aiohttp.ClientError, OSError) as problem:
                await client.forget_login()
                log.warning("Discord could not be reached: %s; again in %g s", type(problem).__name__, wait_s)
                line.is_now(OFFLINE, is_well=False)
                await pause(self._clock, wait_s)
            else:
                break
        assert client.user is not None
        return client.user.id

    async def _serve(
        self,
        chat: Chat,
        api: DiscordApi,
        session: aiohttp.ClientSession,
        client: GatewayClient,
        bot_id: int,
        pace: CallPace,
    ) -> int:
        options = self._options
        access = options.access
        files = ReceivedFiles(self._options.files, self._wall)
        bot_name = code_label(client.user.name if client.user is not None else "", 40)
        line = BotHealth(NAME, self._store, self._tell, self._wall)
        health = ConnectionHealth(line, self._clock, well=f"ready as {bot_name}")
        strangers = Strangers(NAME, self._clock, self._tell)
        private = PrivateChats(self._store)
        writer = DiscordWriter(api, access, private, options.pictures)

        async def history(channel_id: str, limit: int) -> list[discord.Message]:
            await pace.turn()
            return await client.latest(channel_id, limit)

        refused: UsageError | None = None
        async with (
            open_place_views(
                chat,
                self._store,
                writer,
                access,
                self._clock,
                any_call_s=ANY_CALL_S,
                pictures=options.pictures,
            ) as views,
            asyncio.TaskGroup() as tasks,
        ):
            intake = DiscordIntake(
                views,
                self._store,
                access,
                strangers,
                api,
                Downloads(session, files),
                private=private,
                bot_id=bot_id,
                history=history,
                clock=self._clock,
                wall=self._wall,
                may_show=writer.may_show,
                tasks=tasks,
            )
            lanes = frozenset(each.name for each in options.commands if each.kind == "lane")
            interactions = DiscordInteractions(views, chat, access, strangers, api, tasks, lanes, private)
            self.views, self.intake = views, intake
            await intake.prime(sorted(access.chats))
            await asyncio.to_thread(_delete_old, files)

            async def on_new_session() -> None:
                await intake.catch_up()
                await self._register_commands(api, bot_id)

            client.hand_to(
                GatewayHandlers(
                    on_message=intake.on_message,
                    on_edit=intake.on_edit,
                    on_interaction=interactions.on_interaction,
                    on_new_session=on_new_session,
                    on_lost=health.lost,
                    on_back=health.back,
                )
            )
            try:
                refused = await stay_connected(client)
            finally:
                health.close()
                intake.close()
        if refused is not None:
            raise refused
        return 0

    async def _register_commands(self, api: DiscordApi, bot_id: int) -> None:
        """Only if they are others than last time: Discord allows few such calls in a day."""
        commands = registered(self._options.commands)
        digest = hashlib.sha256(msgspec.json.encode(commands)).hexdigest()[:16]
        cursor = f"{REGISTERED}{bot_id}"
        try:
            if await asyncio.to_thread(self._store.cursor, cursor) == digest:
                return
            answer = await api.call("PUT", f"/applications/{bot_id}/commands", commands)
            if answer.is_done:
                await asyncio.to_thread(self._store.set_cursor, cursor, digest)
            else:
                log.warning("the slash commands could not be registered: %s", answer.why)
        except StoreError as failed:
            log.warning("the slash commands could not be noted: %s", failed)


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


def _delete_old(files: ReceivedFiles) -> None:
    try:
        files.delete_old()
    except OSError as problem:
        log.warning("files received earlier could not be deleted: %s", problem.strerror)
