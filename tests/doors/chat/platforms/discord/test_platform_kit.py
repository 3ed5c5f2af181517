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
from tests.doors.chat.platforms.discord.scene import COMMANDS


class TestDiscordPlatform(PlatformKit):
    @asynccontextmanager
    async def stage(self, chat: HandChat) -> AsyncIterator[PlatformStage]:
        clock, store = QuickClock(), MemoryConversations()
        with tempfile.TemporaryDirectory() as folder:
            async with FakeDiscord(clock=clock) as discord:
                ada, general = discord.person("ada"), discord.channel("general")
                mention = f"<@{discord.world.bot.user_id}>"
                options = DiscordOptions(
                    token=discord.token,
                    access=bot_access("discord", [ada.user_id], [], [general.channel_id]),
                    files=Path(folder),
                    commands=COMMANDS,
                    api_url=discord.api_url,
                    gateway_url=discord.gateway_url,
                )

                platform: DiscordPlatform

                async def start(*known: Place) -> asyncio.Task[int]:
                    nonlocal platform
                    platform = DiscordPlatform(
                        options, BotRuntime(store, clock=clock, tell=lambda line: None)
                    )
                    task = asyncio.create_task(platform.run(chat))
                    await discord.wait_ready()
                    assert platform.views is not None
                    for each in known:  # a store with conversations in it would name them
                        await platform.views.view_of(each)
                    await platform.views.wait_idle()
                    return task

                async def end(task: asyncio.Task[int]) -> None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    discord.gateway.forget_sessions()

                running = await start()

                def thread() -> DiscordChannel:
                    return discord.threads(general)[0]

                async def say(text: str) -> None:
                    if not discord.threads(general):
                        await ada.write(general, f"{mention} {text}")
                    else:
                        await ada.write(thread(), text)

                async def shown() -> str:
                    # Edits come after sends, so what is on its way is waited for.
                    assert platform.views is not None
                    await platform.views.wait_idle()
                    return discord.text(thread(), ada) if discord.threads(general) else ""

                async def offers() -> list[str]:
                    return [
                        button["label"] for message in discord.shown(thread()) for button in message.buttons
                    ]

                async def press(label: str) -> None:
                    await ada.press(
                        next(
                            message
                            for message in discord.shown(thread())
                            if label in [button["label"] for button in message.buttons]
                        ),
                        label,
                    )

                async def harm() -> str:
                    notified = [who for message in discord.shown(thread()) for who in message.pings]
                    texts = discord.text(thread())
                    hidden = [hex(ord(letter)) for letter in texts if letter in "\x1b\x07\u202e"]
                    previews = [
                        message.message_id for message in discord.shown(thread()) if not message.flags & 4
                    ]
                    return "; ".join([*notified, *hidden, *previews])

                async def reconnect() -> None:
                    nonlocal running
                    await end(running)
                    running = await start(Place("discord", general.channel_id, thread().channel_id))

                try:
                    yield PlatformStage(
                        name="discord",
                        say=say,
                        shown=shown,
                        offers=offers,
                        press=press,
                        harm=harm,
                        reconnect=reconnect,
                    )
                    assert discord.refused == []
                finally:
                    await end(running)
