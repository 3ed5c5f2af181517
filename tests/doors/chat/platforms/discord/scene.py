"""A fake Discord, and processes of Laneway that serve it with scripted lanes: what the tests here share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.base.clock import LoopClock
from laneway.core.conversations import DeliveryRecord
from laneway.doors.chat.messages import Place
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.platforms.bots.access import BotAccess
from laneway.doors.chat.platforms.bots.pictures import DiffPictures
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.discord.platform import DiscordOptions, DiscordPlatform
from laneway.doors.chat.ports import LaneFactory
from laneway.doors.chat.service import ChatService
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.chat_script import ScriptedLanes
from laneway.testing.clock import QuickClock
from laneway.testing.fake_discord import DiscordChannel, DiscordPerson, DiscordRate, FakeDiscord
from tests.doors.chat.platforms.bot_scenes import COMMANDS

DEADLINE_S = 30.0


class SceneClock(QuickClock):
    """1.2 s between two edits become 30 ms."""

    def __init__(self) -> None:
        super().__init__()
        self._skipped_s = 0.0

    def now(self) -> float:
        return super().now() + self._skipped_s

    def skip(self, seconds: float) -> None:
        """For what only looks at the time: what waits already waits on."""
        self._skipped_s += seconds


class Scene:
    """The service with its people: Ada owns the bot, Ben may use it, Eve may not."""

    def __init__(self, folder: Path, discord: FakeDiscord, clock: SceneClock) -> None:
        self.folder = folder
        self.discord = discord
        self.clock = clock
        self.general = discord.channel("general")
        self.other = discord.channel("other")
        self.ada = discord.person("ada")
        self.ben = discord.person("ben")
        self.eve = discord.person("eve")
        self.allows_ben = True
        self.told: list[str] = []
        """What was written to standard error about strangers …"""
        self.health: list[str] = []
        """… and about the connection."""

    @property
    def access(self) -> BotAccess:
        return BotAccess(
            users=frozenset({self.ada.user_id, *([self.ben.user_id] if self.allows_ben else [])}),
            owners=frozenset({self.ada.user_id}),
            chats=frozenset({self.general.channel_id}),
        )

    @property
    def mention(self) -> str:
        return f"<@{self.discord.world.bot.user_id}>"

    @asynccontextmanager
    async def running(
        self,
        lanes: LaneFactory | None = None,
        *,
        token: str = "",
        pictures: DiffPictures | None = None,
        **options: object,
    ) -> AsyncIterator[Process]:
        """One process of Laneway, which ends with a cancel."""
        lanes = lanes or ScriptedLanes()
        locks = ConversationLockFiles(self.folder / "conversations")
        with Database(self.folder / "laneway.db") as database:
            store = StoredConversations(database, locks)
            settings = ChatOptions(**{"cwd": self.folder, **options})  # type: ignore[arg-type]
            async with ChatService(lanes, store, locks, settings) as chat:
                platform = DiscordPlatform(
                    DiscordOptions(
                        token=token or self.discord.token,
                        access=self.access,
                        files=self.folder / "files",
                        commands=COMMANDS,
                        pictures=pictures,
                        api_url=self.discord.api_url,
                        gateway_url=self.discord.gateway_url,
                    ),
                    BotRuntime(
                        store,
                        clock=self.clock,
                        tell=lambda line: (self.told if "ignored" in line else self.health).append(line),
                    ),
                )
                task = asyncio.create_task(platform.run(chat))
                try:
                    ready = asyncio.create_task(self._wait_ready())
                    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
                    ready.cancel()
                    if task.done():
                        task.result()
                    yield Process(self, platform, chat, store)
                finally:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
        self.discord.gateway.forget_sessions()

    async def _wait_ready(self) -> None:
        await self.discord.wait_ready()
        await self.discord.until(lambda: bool(self.discord.world.commands))

    async def thread(
        self, process: Process, text: str = "hello", *, by: DiscordPerson | None = None
    ) -> DiscordChannel:
        """Ada, or somebody else, begins a conversation; returns its thread, once the message was taken."""
        count = len(self.discord.threads(self.general))
        await (by or self.ada).write(self.general, f"{self.mention} {text}")
        await self.discord.until(lambda: len(self.discord.threads(self.general)) > count)
        await process.settled()
        return self.discord.threads(self.general)[-1]


class Process:
    def __init__(
        self, scene: Scene, platform: DiscordPlatform, chat: ChatService, store: StoredConversations
    ) -> None:
        self.scene, self.platform, self.chat, self.store = scene, platform, chat, store

    def deliveries(self, private: DiscordChannel) -> list[DeliveryRecord]:
        """What is stored for a private chat and was not sent yet."""
        return self.store.deliveries(Place(platform="discord", chat=private.channel_id).key)

    async def has_told(self, count: int) -> None:
        """Wait for so many lines on standard error."""
        while len(self.scene.told) < count:
            await asyncio.sleep(0.005)

    async def settled(self) -> None:
        """Wait until what people have done so far was taken, and what came of it has been sent."""
        assert self.platform.intake is not None
        assert self.platform.views is not None
        await self.platform.intake.wait_idle()
        await self.platform.views.wait_idle()


@asynccontextmanager
async def scene(
    folder: Path,
    *,
    rates: dict[str, DiscordRate] | None = None,
    content_allowed: bool = True,
    deadline_s: float = DEADLINE_S,
) -> AsyncIterator[Scene]:
    clock = SceneClock()
    async with (
        asyncio.timeout(deadline_s),
        FakeDiscord(
            clock=clock, answer_clock=LoopClock(), rates=rates, content_allowed=content_allowed
        ) as discord,
    ):
        yield Scene(folder, discord, clock)
