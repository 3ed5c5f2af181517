"""A fake Telegram, and processes of Laneway that serve it with scripted lanes: what the tests here share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.platforms.bots.access import BotAccess
from laneway.doors.chat.platforms.bots.pictures import DiffPictures
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.telegram.platform import TelegramOptions, TelegramPlatform
from laneway.doors.chat.ports import LaneFactory
from laneway.doors.chat.service import ChatService
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.chat_script import ScriptedLanes
from laneway.testing.clock import QuickClock
from laneway.testing.fake_telegram import BotApiRate, FakeTelegram
from tests.doors.chat.platforms.bot_scenes import COMMANDS

DEADLINE_S = 25.0


class Scene:
    """The service with its people: Ada owns the bot, Ben may use it, Eve may not."""

    def __init__(self, folder: Path, telegram: FakeTelegram, clock: QuickClock) -> None:
        self.folder = folder
        self.telegram = telegram
        self.clock = clock
        self.ada, self.ben, self.eve = (telegram.person(name) for name in ("ada", "ben", "eve"))
        self.home = telegram.private(self.ada)
        self.bens = telegram.private(self.ben)
        self.team = telegram.group("Team")
        self.forum = telegram.group("Forum", is_forum=True)
        self.others = telegram.group("Others")
        self.guests: frozenset[str] = frozenset()
        """Further users who may speak."""
        self.told: list[str] = []
        """What was written to standard error."""

    @property
    def access(self) -> BotAccess:
        return BotAccess(
            users=frozenset({self.ada.user_id, self.ben.user_id}) | self.guests,
            owners=frozenset({self.ada.user_id}),
            chats=frozenset({str(self.team.chat_id), str(self.forum.chat_id)}),
        )

    @asynccontextmanager
    async def running(
        self,
        lanes: LaneFactory | None = None,
        *,
        token: str = "",
        pictures: DiffPictures | None = None,
        **options: Any,
    ) -> AsyncIterator[Process]:
        """One process of Laneway, which ends with a cancel."""
        lanes = lanes or ScriptedLanes()
        locks = ConversationLockFiles(self.folder / "conversations")
        extra = {name: options.pop(name) for name in ("wall", "clock") if name in options}
        with Database(self.folder / "laneway.db") as database:
            store = StoredConversations(database, locks)
            settings = ChatOptions(**{"cwd": self.folder, **options})
            async with ChatService(lanes, store, locks, settings, **extra) as chat:
                platform = TelegramPlatform(
                    TelegramOptions(
                        token=token or self.telegram.token,
                        access=self.access,
                        files=self.folder / "files",
                        commands=COMMANDS,
                        pictures=pictures,
                        api_url=self.telegram.api_url,
                    ),
                    BotRuntime(store, clock=self.clock, tell=self.told.append),
                )
                task = asyncio.create_task(platform.run(chat))
                try:
                    ready = asyncio.create_task(self.telegram.wait_polled())
                    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
                    ready.cancel()
                    if task.done():
                        task.result()
                    yield Process(self, platform, chat, store, task)
                finally:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)


class Process:
    def __init__(
        self,
        scene: Scene,
        platform: TelegramPlatform,
        chat: ChatService,
        store: StoredConversations,
        running: asyncio.Task[int],
    ) -> None:
        self.scene, self.platform, self.chat, self.store = scene, platform, chat, store
        self.running = running

    async def settled(self) -> None:
        """Wait until what people have done so far was taken, and what came of it has been sent."""
        await self.scene.telegram.wait_polled()
        assert self.platform.views is not None
        await self.platform.views.wait_idle()


@asynccontextmanager
async def scene(
    folder: Path, *, private: BotApiRate | None = None, deadline_s: float = DEADLINE_S
) -> AsyncIterator[Scene]:
    clock = QuickClock()
    async with asyncio.timeout(deadline_s), FakeTelegram(clock=clock, private=private) as telegram:
        yield Scene(folder, telegram, clock)
