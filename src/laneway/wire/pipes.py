"""A pipe transport for asyncio that reads into one permanent buffer.

asyncio's own transport allocates 256 KiB for each read and then shrinks it to what came. Whatever is
kept of a read lies where the next buffer would have fitted, so that the heap of a long-lived server
grows by about a kilobyte with each turn, though nothing is leaked. Here the bytes that came are copied
out of the buffer.
"""

from __future__ import annotations

import asyncio
import os
from typing import IO, Any

READ_BYTES = 64 * 1024
"""Of one read, and of the buffer: the default size of a pipe. More comes with the next read."""


class PipeReader(asyncio.ReadTransport):
    """Passes data to a protocol until the end, or until it is closed. It closes the file."""

    def __init__(self, protocol: asyncio.Protocol, file: IO[bytes]) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._file = file
        self._fd = file.fileno()
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)
        self._is_closing = False
        self._is_paused = False
        os.set_blocking(self._fd, False)
        protocol.connection_made(self)
        self._loop.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        try:
            count = os.readv(self._fd, [self._buffer])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as problem:  # EIO: the other end of a terminal is gone
            self._end(problem)
            return
        if count:
            self._protocol.data_received(bytes(self._view[:count]))
        else:
            self._protocol.eof_received()
            self._end(None)

    def _end(self, problem: OSError | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.remove_reader(self._fd)
            self._loop.call_soon(self._close_file, problem)

    def _close_file(self, problem: OSError | None) -> None:
        try:
            self._protocol.connection_lost(problem)
        finally:
            self._file.close()

    # ── asyncio's ReadTransport ────────────────────────────────────────────

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_paused and not self._is_closing

    def pause_reading(self) -> None:
        if self.is_reading():
            self._is_paused = True
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        if self._is_paused and not self._is_closing:
            self._is_paused = False
            self._loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        """Stop reading; safe to call twice."""
        self._end(None)

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.Protocol:
        return self._protocol
