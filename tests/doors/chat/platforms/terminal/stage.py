"""An interactive screen without a terminal: keys come from a test, what is drawn is read as by a person."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pyte
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput

from laneway.doors.chat.platforms.terminal.completing import ChatCompleter
from laneway.doors.chat.platforms.terminal.interactive import InteractiveScreen
from laneway.doors.chat.platforms.terminal.shown_conversation import ShownConversation
from tests.doors.chat.platforms.terminal.hand_chat import HandChat

ROWS, COLUMNS = 30, 80
KEYS = {
    "enter": "\r",
    "newline": "\x1b\r",
    "ctrl-c": "\x03",
    "ctrl-d": "\x04",
    "ctrl-o": "\x0f",
    "tab": "\t",
    "up": "\x1b[A",
}
DEADLINE_S = 30.0


class _Glass(io.StringIO):
    """Interprets what is written, and says that it was."""

    def __init__(self, on_write: Callable[[str], None]) -> None:
        super().__init__()
        self._on_write = on_write

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str) -> int:
        self._on_write(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


class Seat:
    """A person at the screen: types, and waits for what is to be seen."""

    def __init__(self, keys: PipeInput, chat: HandChat, history: History, settle_s: float) -> None:
        self.chat = chat
        self.raw = ""
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=1000)
        self._stream = pyte.Stream(self.screen)
        self._keys = keys
        self._changed = asyncio.Event()
        self.time = 100.0
        self.interactive = InteractiveScreen(
            history=history,
            stdout=_Glass(self._on_write),
            keys=keys,
            columns_rows=lambda: (COLUMNS, ROWS),
            settle_s=settle_s,
            now=lambda: self.time,
            wall=lambda: 1.0,
        )
        self.conversation = ShownConversation(chat, self.interactive, Path("/work"), is_live=True)
        self.running: asyncio.Task[int] | None = None

    def type(self, text: str) -> None:
        self._keys.send_text(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self._keys.send_text(KEYS[key])

    @property
    def rows(self) -> list[str]:
        """What has scrolled away, and what is on the screen."""
        gone = ["".join(row[at].data for at in range(COLUMNS)) for row in self.screen.history.top]
        return [row.rstrip() for row in [*gone, *self.screen.display]]

    @property
    def text(self) -> str:
        return "\n".join(row for row in self.rows if row)

    @property
    def status_row(self) -> str:
        """The last row that has anything."""
        return next((row for row in reversed(self.rows) if row), "")

    async def see(self, text: str) -> None:
        await self.until(lambda: text in self.text, f"“{text}” on the screen")

    async def see_gone(self, text: str) -> None:
        await self.until(lambda: text not in self.text, f"“{text}” gone from the screen")

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"no {what}:\n{self.text}") from None

    async def left(self) -> int:
        """The exit code, once the person has left."""
        assert self.running is not None
        return await asyncio.wait_for(self.running, DEADLINE_S)

    def _on_write(self, text: str) -> None:
        self.raw += text
        self._stream.feed(text)
        self._changed.set()


@asynccontextmanager
async def seat(
    chat: HandChat | None = None,
    *,
    history: History | None = None,
    settle_s: float = 0.0,
    resume: str | None = None,
) -> AsyncIterator[Seat]:
    with create_pipe_input() as keys:
        person = Seat(keys, chat or HandChat(), history or InMemoryHistory(), settle_s)
        await person.conversation.open(resume)
        completer = ChatCompleter(lambda: person.chat.commands("c1"))
        person.running = asyncio.create_task(person.interactive.run(person.conversation, completer))
        try:
            await person.see("claude")  # the status row
            yield person
        finally:
            person.running.cancel()
            await asyncio.gather(person.running, return_exceptions=True)
            await person.conversation.close()
