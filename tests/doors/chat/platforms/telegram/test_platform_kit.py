"""Telegram passes the tests of all chat platforms: a person of the fake service writes, reads and presses."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.doors.chat.messages import Place
from laneway.doors.chat.platforms.bots.access import BotAccess
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.telegram.platform import TelegramOptions, TelegramPlatform
from laneway.testing.clock import QuickClock
from laneway.testing.fake_telegram import FakeTelegram
from laneway.testing.hand_chat import HandChat
from laneway.testing.memory_conversations import MemoryConversations
from laneway.testing.platform_kit import PlatformKit, PlatformStage


class AdaAtTelegram:
    """A person in her private chat with the bot, whose process can be ended and started again."""

    def __init__(self, chat: HandChat, telegram: FakeTelegram, clock: QuickClock, files: Path) -> None:
        self.ada = telegram.person("ada")
        self._chat, self._telegram, self._clock = chat, telegram, clock
        self._place = telegram.private(self.ada)
        self._store = MemoryConversations()
        ids = frozenset({self.ada.user_id})
        self._options = TelegramOptions(
            token=telegram.token,
            access=BotAccess(users=ids, owners=ids, chats=frozenset()),
            files=files,
            api_url=telegram.api_url,
        )
        self._running: asyncio.Task[int] | None = None

    async def start(self, *known: Place) -> None:
        polls = self._telegram.server.polls
        runtime = BotRuntime(self._store, clock=self._clock, tell=lambda line: None)
        platform = TelegramPlatform(self._options, runtime)
        self._running = asyncio.create_task(platform.run(self._chat))
        await self._telegram.until(lambda: self._telegram.server.polls > polls)
        assert platform.views is not None
        for each in known:  # a store with conversations in it would name them
            await platform.views.view_of(each)
        await platform.views.wait_idle()

    async def end(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def say(self, text: str) -> None:
        self.ada.write(self._place, text)

    async def shown(self) -> str:
        drafts = [draft.text for draft in self._telegram.drafts(self._place) if draft.is_shown]
        return "\n\n".join([self._telegram.text(self._place), *drafts])

    async def offers(self) -> list[str]:
        return [label for message in self._telegram.shown(self._place) for label in message.labels]

    async def press(self, label: str) -> None:
        message = next(each for each in self._telegram.shown(self._place) if label in each.labels)
        self.ada.press(message, label)

    async def harm(self) -> str:
        messages = self._telegram.shown(self._place)
        marks = [
            str(entity)
            for message in messages
            for version in message.versions
            for entity in version.entities
            if entity["type"] in ("text_link", "mention")
        ]
        texts = "".join(message.text for message in messages)
        hidden = [hex(ord(letter)) for letter in texts if letter in "\x1b\x07\u202e"]
        return "; ".join([*marks, *hidden])

    async def reconnect(self) -> None:
        await self.end()
        await self.start(Place("telegram", self.ada.user_id))


class TestTelegramPlatform(PlatformKit):
    @asynccontextmanager
    async def stage(self, chat: HandChat) -> AsyncIterator[PlatformStage]:
        clock = QuickClock()
        with tempfile.TemporaryDirectory() as folder:
            async with FakeTelegram(clock=clock) as telegram:
                here = AdaAtTelegram(chat, telegram, clock, Path(folder))
                try:
                    await here.start()
                    yield PlatformStage(
                        name="telegram",
                        say=here.say,
                        shown=here.shown,
                        offers=here.offers,
                        press=here.press,
                        harm=here.harm,
                        reconnect=here.reconnect,
                    )
                finally:
                    await here.end()
