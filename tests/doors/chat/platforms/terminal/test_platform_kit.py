"""The terminal passes the tests of all chat platforms: keys in, a screen out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway.testing.hand_chat import HandChat
from laneway.testing.platform_kit import PlatformKit, PlatformStage
from tests.doors.chat.platforms.terminal.stage import seat

CHOICE = re.compile(r"(\d) {2}(\S.*)")
HINT = "y, n or a number"
"""Shown for as long as an approval waits for a key."""


class TestTerminalPlatform(PlatformKit):
    @asynccontextmanager
    async def stage(self, chat: HandChat) -> AsyncIterator[PlatformStage]:
        async with seat(chat) as person:  # type: ignore[arg-type]  # a `Chat` is all that it needs

            async def say(text: str) -> None:
                person.type(text)
                person.press("enter")

            async def shown() -> str:
                return person.text

            def choices() -> dict[str, str]:
                if not any(HINT in row for row in person.screen.display):
                    return {}
                found = (CHOICE.search(row) for row in person.rows)
                return {each[2].strip(): each[1] for each in found if each}

            async def offers() -> list[str]:
                return list(choices())

            async def press(label: str) -> None:
                await say(choices()[label])

            async def harm() -> str:
                wanted = {"\x1b[2J": "the screen was cleared", "\x1b]0;": "the title was set"}
                return "; ".join(what for code, what in wanted.items() if code in person.raw)

            yield PlatformStage(name="terminal", say=say, shown=shown, offers=offers, press=press, harm=harm)
