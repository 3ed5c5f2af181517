"""`TelegramPlatform`: logs in, shows conversations on Telegram, and takes what people do there.

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


def tell_on_stderr(line: str) -> None:
    sys.stderr.write(f"laneway: {line}\n")
    sys.stderr.flush()


class TelegramPlatform:
    def __init__(
        self,
        options: TelegramOptions,
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
        self.polling: TelegramPolling | None = None

    @property
    def name(self) -> str:
        return NAME

    async def run(self, chat: Chat) -> int:
        """Until it is cancelled. Raises `UsageError` if Telegram does not let us in."""
        options = self._options
        health = BotHealth(NAME, self._store, self._tell, self._wall)
        refused: UsageError | None = None
        async with TelegramApi(options.token, options.api_url) as api:
            bot = await self._log_in(api, health)
            writer = TelegramWriter(api, options.access, pictures=options.pictures)
            files = ReceivedFiles(options.files, self._wall)
            strangers = Strangers(NAME, self._clock, self._tell)
            async with open_place_views(
                chat,
                self._store,
                writer,
                options.access,
                self._clock,
                any_call_s=ANY_CALL_S,
                pictures=options.pictures,
            ) as views:
                intake = TelegramIntake(views, options.access, strangers, api, files, bot)
                polling = TelegramPolling(
                    api,
                    self._store,
                    health,
                    self._clock,
                    intake.handle,
                    well=f"ready as @{code_label(bot.username, 40)}",
                )
                self.views, self.polling = views, polling
                await self._register_commands(api, bot)
                await asyncio.to_thread(_delete_old, files)
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
                await sleep(self._clock, wait_s)
            except TelegramRefused as refused:
                if refused.code in (401, 404):
                    raise UsageError(BAD_TOKEN) from None
                await sleep(self._clock, max(wait_s, refused.retry_after_s or 0.0))
            except msgspec.ValidationError:
                raise UsageError("This is no server of Telegram's Bot API: correct its address.") from None
        raise AssertionError("it is tried for ever")

    async def _register_commands(self, api: TelegramApi, bot: BotName) -> None:
        """Only if they are others than last time."""
        commands = registered(self._options.commands)
        digest = hashlib.sha256(msgspec.json.encode(commands)).hexdigest()[:16]
        cursor = f"{REGISTERED}{bot.id}"
        try:
            if not commands or await asyncio.to_thread(self._store.cursor, cursor) == digest:
                return
            await api.call("setMyCommands", {"commands": commands})
            await asyncio.to_thread(self._store.set_cursor, cursor, digest)
        except (TelegramRefused, TelegramOffline, StoreError) as problem:
            log.warning("the list of commands could not be registered: %s", problem)


def _delete_old(files: ReceivedFiles) -> None:
    try:
        files.delete_old()
    except OSError as problem:
        log.warning("files received earlier could not be deleted: %s", problem.strerror)
