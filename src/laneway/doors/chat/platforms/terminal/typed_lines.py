"""Reads lines from standard input without blocking the event loop: a pipe, a file, a terminal.

A thread reads, because an event loop cannot wait for a file. It reads only when a line is wanted, so
nothing is taken from whoever reads after us, and it ends with the process however long it waits.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading

READ_BYTES = 64 * 1024
MAX_LINE_BYTES = 4 * 1024 * 1024
"""Of one message: four bytes for each of the characters that an engine takes at most."""


class LineTooLong(Exception):
    """Nobody types that much, and no engine takes it."""


class TypedLines:
    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._buffer = bytearray()
        self._is_at_end = False
        self._wanted: queue.SimpleQueue[asyncio.AbstractEventLoop] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._reading: asyncio.Future[bytes] | None = None

    async def line(self) -> str | None:
        """The next line without its end; none at the end of input. A cancelled call loses nothing."""
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return _decoded(line)
            if self._is_at_end:
                rest, self._buffer = bytes(self._buffer), bytearray()
                return _decoded(rest) if rest else None
            if len(self._buffer) > MAX_LINE_BYTES:
                raise LineTooLong
            await self._read()

    async def _read(self) -> None:
        if self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.create_future()
            if self._thread is None:
                # Not asyncio's own threads: the end of the process would wait for them.
                self._thread = threading.Thread(target=self._work, name="standard input", daemon=True)
                self._thread.start()
            self._wanted.put(loop)
        reading = self._reading
        data = await asyncio.shield(reading)
        if self._reading is reading:
            self._reading = None
            self._buffer += data
            self._is_at_end = not data

    def _work(self) -> None:
        while True:
            loop = self._wanted.get()
            try:
                data = os.read(self._fd, READ_BYTES)
            except OSError:
                data = b""  # hung up
            try:
                loop.call_soon_threadsafe(self._deliver, data)
            except RuntimeError:
                return  # the loop is closed: the process ends
            if not data:
                return

    def _deliver(self, data: bytes) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(data)


def _decoded(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
