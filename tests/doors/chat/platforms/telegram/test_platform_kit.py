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


class TestTelegramPlatform(PlatformKit):
    @asynccontextmanager
    async def stage(self, chat: HandChat) -> AsyncIterator[PlatformStage]:
        clock, store = QuickClock(), MemoryConversations()
        with tempfile.TemporaryDirectory() as folder:
            async with FakeTelegram(clock=clock) as telegram:
                ada = telegram.person("ada")
                place = telegram.private(ada)
                ids = frozenset({ada.user_id})
                options = TelegramOptions(
                    token=telegram.token,
                    access=BotAccess(users=ids, owners=ids, chats=frozenset()),
                    files=Path(folder),
                    api_url=telegram.api_url,
                )

                async def start(*known: Place) -> asyncio.Task[int]:
                    polls = telegram.server.polls
                    platform = TelegramPlatform(
                        options, BotRuntime(store, clock=clock, tell=lambda line: None)
                    )
                    task = asyncio.create_task(platform.run(chat))
                    await telegram.until(lambda: telegram.server.polls > polls)
                    assert platform.views is not None
                    for each in known:  # a store with conversations in it would name them
                        await platform.views.view_of(each)
                    await platform.views.wait_idle()
                    return task

                async def end(task: asyncio.Task[int]) -> None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

                running = await start()

                async def say(text: str) -> None:
                    ada.write(place, text)

                async def shown() -> str:
                    drafts = [draft.text for draft in telegram.drafts(place) if draft.is_shown]
                    return "\n\n".join([telegram.text(place), *drafts])

                async def offers() -> list[str]:
                    return [label for message in telegram.shown(place) for label in message.labels]

                async def press(label: str) -> None:
                    message = next(each for each in telegram.shown(place) if label in each.labels)
                    ada.press(message, label)

                async def harm() -> str:
                    marks = [
                        str(entity)
                        for message in telegram.shown(place)
                        for version in message.versions
                        for entity in version.entities
                        if entity["type"] in ("text_link", "mention")
                    ]
                    texts = "".join(message.text for message in telegram.shown(place))
                    hidden = [hex(ord(letter)) for letter in texts if letter in "\x1b\x07\u202e"]
                    return "; ".join([*marks, *hidden])

                async def reconnect() -> None:
                    nonlocal running
                    await end(running)
                    running = await start(Place("telegram", ada.user_id))

                try:
                    yield PlatformStage(
                        name="telegram",
                        say=say,
                        shown=shown,
                        offers=offers,
                        press=press,
                        harm=harm,
                        reconnect=reconnect,
                    )
                finally:
                    await end(running)
