"""Discord passes the tests of all chat platforms: a person of the fake service writes, reads and presses."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.doors.chat.messages import Place
from laneway.doors.chat.platforms.bots.access import bot_access
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.discord.platform import DiscordOptions, DiscordPlatform
from laneway.testing.clock import QuickClock
from laneway.testing.fake_discord import DiscordChannel, FakeDiscord
from laneway.testing.hand_chat import HandChat
from laneway.testing.memory_conversations import MemoryConversations
from laneway.testing.platform_kit import PlatformKit, PlatformStage
from tests.doors.chat.platforms.bot_scenes import COMMANDS


class AdaAtDiscord:
    """A person who begins a thread in a channel; the process of the bot can be ended and started again."""

    def __init__(self, chat: HandChat, discord: FakeDiscord, clock: QuickClock, files: Path) -> None:
        self.ada, self.general = discord.person("ada"), discord.channel("general")
        self._chat, self._discord, self._clock = chat, discord, clock
        self._store = MemoryConversations()
        self._options = DiscordOptions(
            token=discord.token,
            access=bot_access("discord", [self.ada.user_id], [], [self.general.channel_id]),
            files=files,
            commands=COMMANDS,
            api_url=discord.api_url,
            gateway_url=discord.gateway_url,
        )
        self._platform: DiscordPlatform
        self._running: asyncio.Task[int] | None = None

    async def start(self, *known: Place) -> None:
        runtime = BotRuntime(self._store, clock=self._clock, tell=lambda line: None)
        self._platform = DiscordPlatform(self._options, runtime)
        self._running = asyncio.create_task(self._platform.run(self._chat))
        await self._discord.wait_ready()
        assert self._platform.views is not None
        for each in known:  # a store with conversations in it would name them
            await self._platform.views.view_of(each)
        await self._platform.views.wait_idle()

    async def end(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._discord.gateway.forget_sessions()

    @property
    def thread(self) -> DiscordChannel:
        return self._discord.threads(self.general)[0]

    async def say(self, text: str) -> None:
        if not self._discord.threads(self.general):
            mention = f"<@{self._discord.world.bot.user_id}>"
            await self.ada.write(self.general, f"{mention} {text}")
        else:
            await self.ada.write(self.thread, text)

    async def shown(self) -> str:
        # Edits come after sends, so what is on its way is waited for.
        assert self._platform.views is not None
        await self._platform.views.wait_idle()
        has_thread = bool(self._discord.threads(self.general))
        return self._discord.text(self.thread, self.ada) if has_thread else ""

    async def offers(self) -> list[str]:
        messages = self._discord.shown(self.thread)
        return [button["label"] for message in messages for button in message.buttons]

    async def press(self, label: str) -> None:
        message = next(
            message
            for message in self._discord.shown(self.thread)
            if label in [button["label"] for button in message.buttons]
        )
        await self.ada.press(message, label)

    async def harm(self) -> str:
        messages = self._discord.shown(self.thread)
        notified = [who for message in messages for who in message.pings]
        texts = self._discord.text(self.thread)
        hidden = [hex(ord(letter)) for letter in texts if letter in "\x1b\x07\u202e"]
        previews = [message.message_id for message in messages if not message.flags & 4]
        return "; ".join([*notified, *hidden, *previews])

    async def reconnect(self) -> None:
        await self.end()
        await self.start(Place("discord", self.general.channel_id, self.thread.channel_id))


class TestDiscordPlatform(PlatformKit):
    @asynccontextmanager
    async def stage(self, chat: HandChat) -> AsyncIterator[PlatformStage]:
        clock = QuickClock()
        with tempfile.TemporaryDirectory() as folder:
            async with FakeDiscord(clock=clock) as discord:
                here = AdaAtDiscord(chat, discord, clock, Path(folder))
                try:
                    await here.start()
                    yield PlatformStage(
                        name="discord",
                        say=here.say,
                        shown=here.shown,
                        offers=here.offers,
                        press=here.press,
                        harm=here.harm,
                        reconnect=here.reconnect,
                    )
                    assert discord.refused == []
                finally:
                    await here.end()
