"""Finds the user's terminal, writes prompts to it and reads lines from it.

Found also when standard input is a pipe (`git diff | laneway ask -`): a person who sees our output
can be asked. Reads through the event loop, so that a question can be withdrawn at any time.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

READ_BYTES = 4096
"""The longest line that a terminal delivers at once."""
MAX_LINE_BYTES = 64 * 1024
"""Of one answer, read in several pieces. Nobody types more."""
CONTROLLING = "/dev/tty"


class Keyboard:
    """A terminal for prompts, made by `find_keyboard`. `screen` is where questions are drawn."""

    def __init__(self, fd: int, screen: TextIO) -> None:
        self.screen = screen
        self._fd = fd
        self._modes: list[Any] | None = None
        """The terminal modes that `restore` sets again, while echo is off."""

    def write(self, text: str) -> None:
        self.screen.write(text)
        self.screen.flush()

    def discard_typed(self) -> None:
        """Discard what was typed and not read: it was meant for something else."""
        import termios

        try:
            termios.tcflush(self._fd, termios.TCIFLUSH)
        except termios.error:
            pass  # hung up: the next read says so

    async def read_line(self, prompt: str, *, is_hidden: bool = False) -> str | None:
        """The line that is typed from now on; `None` at the end of input (Ctrl-D, or hung up)."""
        self.discard_typed()
        if not is_hidden:
            self.write(prompt)
            return await self._line()
        with self._echo_off():
            self.write(prompt)  # only now: a secret that is pasted at once would be shown, and discarded
            line = await self._line()
        self.write("\n")
        return line

    async def _line(self) -> str | None:
        loop = asyncio.get_running_loop()
        line: asyncio.Future[bytes | None] = loop.create_future()
        typed = bytearray()

        def ready() -> None:
            try:
                data = os.read(self._fd, READ_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            typed.extend(data)
            if line.done():
                return
            if not data or len(typed) > MAX_LINE_BYTES:
                line.set_result(None)
            elif b"\n" in data or b"\r" in data:
                line.set_result(bytes(typed))

        try:
            loop.add_reader(self._fd, ready)
        except OSError:
            return None  # a terminal that the event loop cannot wait for
        try:
            received = await line
        finally:
            loop.remove_reader(self._fd)
        return None if received is None else received.decode("utf-8", "replace").strip()

    @contextmanager
    def _echo_off(self) -> Iterator[None]:
        import termios

        try:
            before = termios.tcgetattr(self._fd)
            after = termios.tcgetattr(self._fd)
            after[3] &= ~termios.ECHO
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, after)
        except termios.error:
            before = None
        self._modes = before
        try:
            yield
        finally:
            self.restore()

    def restore(self) -> None:
        """Turn echo on again; also called before the process exits at once."""
        import termios

        modes, self._modes = self._modes, None
        if modes is not None:
            try:
                termios.tcsetattr(self._fd, termios.TCSADRAIN, modes)
            except termios.error:
                pass


def find_keyboard() -> Keyboard | None:
    """The terminal of the user who started us; `None` if none of our streams is a terminal."""
    stream = next((number for number in (0, 2, 1) if _is_terminal(number)), None)
    if stream is None:
        return None
    fd = _open(stream, os.O_RDONLY | os.O_NONBLOCK)
    if fd is None:
        return None
    if _is_terminal(2):
        return Keyboard(fd, sys.stderr)
    out = _open(stream, os.O_WRONLY)
    return None if out is None else Keyboard(fd, os.fdopen(out, "w", encoding="utf-8", errors="replace"))


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def _open(stream: int, how: int) -> int | None:
    """Open the terminal once more: flags that we set on it do not affect other programs.

    By its name first: the event loop of macOS cannot wait for `/dev/tty`.
    """
    try:
        names = [os.ttyname(stream), CONTROLLING]
    except OSError:
        names = [CONTROLLING]  # a terminal that was opened outside of our container
    for name in names:
        try:
            return os.open(name, how | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            continue
    return stream if stream == 0 else None
