"""`BotRuntime`: what the platform of every bot runs on: its store, its clocks, and its user's standard error.

Opens what all bots need, and registers their commands.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.clock import LoopClock
from laneway.base.errors import StoreError
from laneway.core.conversations import ConversationStore
from laneway.core.ports import Clock
from laneway.doors.chat.platforms.bots.access import BotAccess, Strangers
from laneway.doors.chat.platforms.bots.health import BotHealth, tell_on_stderr
from laneway.doors.chat.platforms.bots.pictures import DiffPictures
from laneway.doors.chat.platforms.bots.place_views import BotPlaceViews, open_place_views
from laneway.doors.chat.platforms.bots.posts import BotWriter
from laneway.doors.chat.platforms.bots.received_files import ReceivedFiles
from laneway.doors.chat.ports import Chat

log = logging.getLogger(__name__)


class BotRuntime:
    def __init__(
        self,
        store: ConversationStore,
        *,
        clock: Clock | None = None,
        wall: Callable[[], float] = time.time,
        tell: Callable[[str], None] = tell_on_stderr,
    ) -> None:
        self.store = store
        self.clock = clock or LoopClock()
        self.wall = wall
        self._tell = tell

    def health(self, platform: str) -> BotHealth:
        return BotHealth(platform, self.store, self._tell, self.wall)

    def strangers(self, platform: str) -> Strangers:
        return Strangers(platform, self.clock, self._tell)

    async def received_files(self, folder: Path) -> ReceivedFiles:
        """The folder, without the old ones."""
        files = ReceivedFiles(folder, self.wall)
        await asyncio.to_thread(_delete_old, files)
        return files

    def place_views(
        self,
        chat: Chat,
        writer: BotWriter,
        access: BotAccess,
        *,
        any_call_s: float,
        pictures: DiffPictures | None,
    ) -> AbstractAsyncContextManager[BotPlaceViews]:
        return open_place_views(
            chat, self.store, writer, access, self.clock, any_call_s=any_call_s, pictures=pictures
        )

    async def register_commands(
        self, cursor: str, commands: Sequence[Any], register: Callable[[], Awaitable[str]]
    ) -> None:
        """Only if they are others than last time. `register` returns why the service refused them."""
        digest = hashlib.sha256(msgspec.json.encode(commands)).hexdigest()[:16]
        try:
            if await asyncio.to_thread(self.store.cursor, cursor) == digest:
                return
            why = await register()
            if why:
                log.warning("the commands could not be registered: %s", why)
            else:
                await asyncio.to_thread(self.store.set_cursor, cursor, digest)
        except StoreError as problem:
            log.warning("the registered commands could not be noted: %s", problem)


def _delete_old(files: ReceivedFiles) -> None:
    try:
        files.delete_old()
    except OSError as problem:
        log.warning("files received earlier could not be deleted: %s", problem.strerror)
