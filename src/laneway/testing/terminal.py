"""Runs a program in a pseudo-terminal and reads its screen as a person would.

Owns one pseudo-terminal and, through `laneway.wire.child`, the whole tree of the program in it. A test
waits for a text on the screen, under a deadline, never for time to pass. Needs `pyte`, which interprets
the escape codes.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from laneway.wire.child import Child, Exit
from laneway.wire.guardian import PROGRAM

ROWS, COLUMNS = 50, 160
"""Wide enough that the texts which tests look for fit on one line."""
READ_BYTES = 64 * 1024
KEPT_BYTES = 1024 * 1024
AGAIN_S = 0.3
"""A dialog may ignore keys at first, so that a person who is typing does not answer it unread."""
KEYS = {
    "enter": b"\r",
    "escape": b"\x1b",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "tab": b"\t",
    "space": b" ",
    "ctrl-c": b"\x03",
    "ctrl-d": b"\x04",
}
# The process leads a session already, so the terminal can become its controlling terminal.
_INTO_TERMINAL = """\
import fcntl, os, sys, termios
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for stream in (0, 1, 2):
    os.dup2(terminal, stream)
os.execv(sys.argv[2], sys.argv[2:])
"""


OnOutput: TypeAlias = Callable[[bytes], None]

_LAST = b"\x05"
"""Written after a program has ended: when we read it, we have read all output of the program."""


class Terminal:
    """`async with terminal([...]) as screen:`, then `type`, `press` and `wait_for`."""

    def __init__(self, master: int, slave: int, rows: int, columns: int, on_output: OnOutput) -> None:
        import pyte

        self._on_output = on_output
        self._master = master
        self._slave = slave
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        """The program's output with escape codes; only the end of it, if it is long."""
        self._changed = asyncio.Event()
        self._ending: Exit | None = None
        self._is_marked = False
        self._end: Exit | None = None

    @property
    def rows(self) -> list[str]:
        """The lines on the screen, including empty ones."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """The lines on the screen, without empty ones."""
        return "\n".join(line.rstrip() for line in self._screen.display if line.strip())

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        """As a person resizes a window: the program is told. Long lines are cut, as in xterm."""
        self._screen.resize(rows, columns)
        _set_size(self._master, rows, columns)

    def press(self, *keys: str) -> None:
        """Press keys by their names in `KEYS`."""
        for key in keys:
            os.write(self._master, KEYS[key])

    async def wait_for(self, text: str, deadline_s: float = 30.0) -> None:
        """Wait until `text` is on the screen, wherever its lines break."""
        await self._wait(lambda: _dense(text) in _dense(self.text), f"“{text}” on", deadline_s)

    async def wait_until(self, condition: Callable[[], bool], what: str, deadline_s: float = 30.0) -> None:
        """Wait until a condition is true; `what` names it in the error."""
        await self._wait(condition, what, deadline_s)

    async def wait_gone(self, text: str, deadline_s: float = 30.0) -> None:
        await self._wait(lambda: _dense(text) not in _dense(self.text), f"“{text}” gone from", deadline_s)

    async def wait_end(self, deadline_s: float = 60.0) -> Exit:
        """Wait until the program has ended and all its output is on the screen."""
        try:
            async with asyncio.timeout(deadline_s):
                while self._end is None:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(f"the program goes on after {deadline_s} s:\n{self.text}") from None
        return self._end

    async def press_until_gone(self, key: str, text: str, deadline_s: float = 30.0) -> None:
        """Press a key until it has an effect: until `text` is gone from the screen."""
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline_s
        while True:
            self.press(key)
            try:
                return await self.wait_gone(text, min(AGAIN_S, end - loop.time()))
            except TimeoutError:
                if loop.time() >= end:
                    raise

    async def _wait(self, condition: Callable[[], bool], what: str, deadline_s: float) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                while not condition():
                    if self._end is not None:
                        raise RuntimeError(f"the program ended ({self._end}):\n{self.text}")
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(f"no {what} the screen within {deadline_s} s:\n{self.text}") from None

    def on_readable(self) -> None:
        data = os.read(self._master, READ_BYTES)
        self._mark()
        if self._is_marked and _LAST in data:
            data, self._end = data.replace(_LAST, b""), self._ending
        self._stream.feed(data)
        self._on_output(data)
        self.raw = (self.raw + data)[-KEPT_BYTES:]
        self._changed.set()

    def on_end(self, end: Exit) -> None:
        """Its last output may still be unread."""
        self._ending = end
        self._mark()

    def _mark(self) -> None:
        if self._ending is not None and not self._is_marked:
            with suppress(BlockingIOError):  # full of unread output
                os.write(self._slave, _LAST)
                self._is_marked = True


@asynccontextmanager
async def terminal(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    rows: int = ROWS,
    columns: int = COLUMNS,
    on_output: OnOutput = lambda data: None,
) -> AsyncIterator[Terminal]:
    """Run a program in a terminal; at the end it and all that it started are gone.

    `on_output` gets the program's output as it comes, for a recording.
    """
    # We keep the program's side open, too: the program opens it only after its start.
    master, slave = pty.openpty()
    try:
        _set_size(slave, rows, columns)
        os.set_blocking(slave, False)
        screen = Terminal(master, slave, rows, columns, on_output)
        into = [sys.executable, "-I", "-S", "-c", _INTO_TERMINAL, os.ttyname(slave), *argv]
        child = await Child.spawn(
            into, on_stdout=lambda data: None, on_end=screen.on_end, env=env, cwd=cwd, kind=PROGRAM
        )
        asyncio.get_running_loop().add_reader(master, screen.on_readable)
        try:
            yield screen
        finally:
            await child.stop(own_end_s=0.0)
            asyncio.get_running_loop().remove_reader(master)
    finally:
        os.close(slave)
        os.close(master)


def _set_size(fd: int, rows: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _dense(text: str) -> str:
    return "".join(text.split())
