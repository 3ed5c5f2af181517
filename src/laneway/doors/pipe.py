"""A JSON-RPC peer on standard input and output, and its orderly end, for every stdio server.

While it serves, file descriptors 0 and 1 are taken away from everything else in the process:
nothing but the protocol reaches the client, and no child process can read the client's messages.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import sys
import threading

from laneway.wire.frames import MAX_FRAME_BYTES
from laneway.wire.messages import CLOSING
from laneway.wire.peer import Notice, OnNotification, Peer
from laneway.wire.pipes import PipeReader
from laneway.wire.service import OnRequest

log = logging.getLogger(__name__)

FLUSH_S = 2.0
"""For the last answers to reach a client that still reads."""


class Pipe(asyncio.Protocol):
    """A peer on standard input and output. `ended` is set when the client hangs up."""

    def __init__(
        self,
        *,
        on_request: OnRequest,
        on_notification: OnNotification,
        cancel_notice: Notice,
        with_lengths: bool = False,
        refusal: int = CLOSING,
        max_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        self._on_request = on_request
        self._on_notification = on_notification
        self._cancel_notice = cancel_notice
        self._with_lengths = with_lengths
        self._max_bytes = max_bytes
        self._refusal = refusal
        self.ended = asyncio.Event()
        self.peer: Peer
        self._has_let_go = asyncio.Event()
        self._pump: threading.Thread | None = None

    async def open(self, reading: int, writing: int) -> None:
        """Make the peer, ready to send; it reads nothing before `listen`."""
        loop = asyncio.get_running_loop()
        # A plain file, as in `laneway mcp-server < requests > answers`, or /dev/null is no pipe to asyncio.
        if not _is_pipe(reading):
            reading, _ = _pumped(reading, is_input=True)
        if not _is_pipe(writing):
            writing, self._pump = _pumped(writing, is_input=False)
        self._reading = reading
        self._writer, _ = await loop.connect_write_pipe(lambda: _Pen(self), os.fdopen(writing, "wb"))
        self.peer = Peer(
            self._writer.write,
            on_request=self._on_request,
            on_notification=self._on_notification,
            backlog_bytes=self._writer.get_write_buffer_size,
            pause_reading=lambda: self._reader.pause_reading(),
            resume_reading=lambda: self._reader.resume_reading(),
            cancel_notice=self._cancel_notice,
            with_lengths=self._with_lengths,
            refusal=self._refusal,
            max_bytes=self._max_bytes,
        )

    async def listen(self) -> None:
        self._reader = PipeReader(self, os.fdopen(self._reading, "rb"))

    # ── asyncio's side ─────────────────────────────────────────────────────

    def data_received(self, data: bytes) -> None:
        self.peer.feed(data)

    def eof_received(self) -> None:
        self.ended.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set()

    def let_go(self) -> None:
        """The writing end is closed: everything is sent, or the client no longer reads."""
        self._has_let_go.set()
        self.ended.set()

    async def aclose(self) -> None:
        """Answer open requests, send what is still unsent, close both ends."""
        await self.peer.aclose()
        self._writer.close()
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._has_let_go.wait()
        except TimeoutError:
            log.warning("the client did not take its last answers")
            self._writer.abort()
        if self._pump is not None:
            await asyncio.to_thread(self._pump.join, FLUSH_S)
        self._reader.close()


class _Pen(asyncio.Protocol):
    """The writing end: asyncio's callbacks for an emptied buffer and for a reader that went away."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def resume_writing(self) -> None:
        self._pipe.peer.drained()

    def connection_lost(self, error: Exception | None) -> None:
        self._pipe.let_go()


def _is_pipe(descriptor: int) -> bool:
    """Whether the event loop can wait for it; it cannot for a plain file or /dev/null."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


def _pumped(file: int, *, is_input: bool) -> tuple[int, threading.Thread]:
    """A pipe in place of a plain file, and the thread that copies between the two."""
    reading, writing = os.pipe()
    ours, ends = (reading, (file, writing)) if is_input else (writing, (reading, file))
    pump = threading.Thread(target=_copy, args=ends, daemon=True)
    pump.start()
    return ours, pump


def _copy(source: int, target: int) -> None:
    try:
        while data := os.read(source, 65536):
            while data:
                data = data[os.write(target, data) :]
    except OSError as problem:
        log.warning("a plain file on standard input or output failed: %s", problem.strerror)
    finally:
        os.close(source)
        os.close(target)


def claim_standard_streams() -> tuple[int, int]:
    """Take descriptors 0 and 1 for ourselves; other code that uses them reads nothing, writes to stderr."""
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing
