"""`TelegramPlatform`: logs in, shows conversations on Telegram, and takes what people do there.

A port `ChatPlatform`. Nothing of it is kept outside of `run`; the token is in memory, and in no text.
"""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import msgspec

from laneway.base.errors import UsageError
from laneway.base.plain import code_label
from laneway.doors.chat.outbox import BACKOFF_S
from laneway.doors.chat.platforms.bots.access import BotAccess
from laneway.doors.chat.platforms.bots.health import BotHealth
from laneway.doors.chat.platforms.bots.pictures import DiffPictures
from laneway.doors.chat.platforms.bots.place_views import BotPlaceViews
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.telegram.api import (
    API_URL,
    TelegramApi,
    TelegramOffline,
    TelegramRefused,
)
from laneway.doors.chat.platforms.telegram.commands import registered
from laneway.doors.chat.platforms.telegram.intake import TelegramIntake
from laneway.doors.chat.platforms.telegram.polling import BAD_TOKEN, OFFLINE, TelegramPolling, sleep
from laneway.doors.chat.platforms.telegram.updates import NAME, BotName
from laneway.doors.chat.platforms.telegram.writer import ANY_CALL_S, TelegramWriter
from laneway.doors.chat.ports import Chat, ChatCommand

log = logging.getLogger(__name__)

REGISTERED = "telegram:commands:"
"""Begins the name of the cursor that says which commands were registered last."""


class TelegramOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Not to be printed: it has the token."""

    token: str
    access: BotAccess
    files: Path
    """A private folder for what people attach."""
    commands: tuple[ChatCommand, ...] = ()
    """For the list that clients complete."""
    api_url: str = API_URL
    pictures: DiffPictures | None = None
    """What draws the changes of turns; without it they are shown as text."""

    def __repr__(self) -> str:
        return "TelegramOptions(…)"


class TelegramPlatform:
    def __init__(self, options: TelegramOptions, runtime: BotRuntime) -> None:
        self._options = options
        self._runtime = runtime
        self.views: BotPlaceViews | None = None
        """While it runs; for tests."""
        self.polling: TelegramPolling | None = None

    @property
    def name(self) -> str:
        return NAME

    async def run(self, chat: Chat) -> int:
        """Until it is cancelled. Raises `UsageError` if Telegram does not let us in."""
        options, runtime = self._options, self._runtime
        health = runtime.health(NAME)
        refused: UsageError | None = None
        async with TelegramApi(options.token, options.api_url) as api:
            bot = await self._log_in(api, health)
            writer = TelegramWriter(api, options.access, pictures=options.pictures)
            strangers = runtime.strangers(NAME)
            async with runtime.place_views(
                chat, writer, options.access, any_call_s=ANY_CALL_S, pictures=options.pictures
            ) as views:
                files = await runtime.received_files(options.files)
                intake = TelegramIntake(views, options.access, strangers, api, files, bot)
                polling = TelegramPolling(
                    api,
                    runtime.store,
                    health,
                    runtime.clock,
                    intake.handle,
                    well=f"ready as @{code_label(bot.username, 40)}",
                )
                self.views, self.polling = views, polling
                await self._register_commands(api, bot)
                try:
                    await polling.run()
                except UsageError as problem:
                    refused = problem  # raised outside of the task group, which would wrap it
        if refused is not None:
            raise refused
        return 0

    async def _log_in(self, api: TelegramApi, health: BotHealth) -> BotName:
        """Waits for a network, and raises `UsageError` for a token that is refused."""
        for wait_s in itertools.chain(BACKOFF_S, itertools.repeat(BACKOFF_S[-1])):
            try:
                return msgspec.convert(await api.call("getMe"), BotName)
            except TelegramOffline:
                health.is_now(OFFLINE, is_well=False)
                await sleep(self._runtime.clock, wait_s)
            except TelegramRefused as refused:
                if refused.code in (401, 404):
                    raise UsageError(BAD_TOKEN) from None
                await sleep(self._runtime.clock, max(wait_s, refused.retry_after_s or 0.0))
            except msgspec.ValidationError:
                raise UsageError("This is no server of Telegram's Bot API: correct its address.") from None
        raise AssertionError("it is tried for ever")

    async def _register_commands(self, api: TelegramApi, bot: BotName) -> None:
        commands = registered(self._options.commands)

        async def register() -> str:
            try:
                await api.call("setMyCommands", {"commands": commands})
            except (TelegramRefused, TelegramOffline) as problem:
                return str(problem)
            return ""

        if commands:
            await self._runtime.register_commands(f"{REGISTERED}{bot.id}", commands, register)
