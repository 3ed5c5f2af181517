"""`laneway chat` as people run it: in a terminal of its own, the real engines with scripted models."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import laneway as package
from laneway.testing.terminal import Terminal, terminal
from tests.cli.support import LANEWAY

ROWS, COLUMNS = 90, 110
"""Nothing scrolls away."""
SOURCE = str(Path(package.__file__).parent.parent)
"""PYTHONPATH may be relative to another folder."""
NEWLINE = "\x1b\r"
STREAM = "%stream 1000 words over 100 seconds"
BEGUN = "one two three four"


class ChatSeat:
    """A person at `laneway chat`."""

    def __init__(self, screen: Terminal) -> None:
        self.screen = screen
        self.see = screen.wait_for

    @property
    def text(self) -> str:
        return self.screen.text

    @property
    def rows(self) -> list[str]:
        return self.screen.rows

    async def type(self, *lines: str) -> None:
        """Without the last Enter."""
        self.screen.type(NEWLINE.join(lines))
        await self.see(lines[-1])

    async def say(self, *lines: str) -> None:
        """Type a message, and send it once it is on the screen."""
        await self.type(*lines)
        self.screen.press("enter")

    async def hear(self, *row: str) -> None:
        """Wait for a row that is only this, such as a lane's words."""
        await self.screen.wait_until(lambda: all(each in self.rows for each in row), f"a row {row} on")

    async def answer(self, text: str) -> None:
        """Answer the question in front; what comes at once after a question does not count."""
        self.screen.type(text)
        await self.see(f"? {text}")
        await self.screen.press_until_gone("enter", f"? {text}")

    async def idle(self) -> None:
        """Wait until nothing works any more."""
        await self.screen.wait_until(lambda: "Ctrl-C stops" not in self.text, "an end of the work")

    def count(self, text: str) -> int:
        return self.text.count(text)


@asynccontextmanager
async def at_chat(cwd: Path, *words: str, **env: str) -> AsyncIterator[ChatSeat]:
    surroundings = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": SOURCE, **env}
    async with terminal(
        [*LANEWAY, "chat", *words], env=surroundings, cwd=cwd, rows=ROWS, columns=COLUMNS
    ) as screen:
        seat = ChatSeat(screen)
        yield seat
