"""Outgoing messages of a peer: one write per iteration of the event loop, limits on unsent bytes.

Notifications may be dropped (`is_behind`); requests and answers never are. So there is a second
limit: past it we stop reading from a peer that does not read from us, until it has taken its answers.
A caller that passes `pause_reading` and `resume_reading` (those of an asyncio read transport fit) must
call `drained` when its write buffer has run low (from a protocol's `resume_writing`), and must take the
loss of the *writing* end for the end of the connection, since the reading end is silent meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

MAX_BACKLOG_BYTES = 8 * 1024 * 1024
"""Unsent bytes past which notifications are dropped: a reader this far behind has stopped reading."""
MAX_UNSENT_BYTES = 2 * MAX_BACKLOG_BYTES
"""Unsent bytes past which nothing more is read. More than the other limit, so that notifications are
dropped first; a client that writes all its requests before it reads one answer has this much room."""
LOW_BYTES = 64 * 1024
"""Unsent bytes that are next to nothing. Not less than asyncio's own low-water mark."""


def no_backlog() -> int:
    return 0


def do_nothing() -> None:
    pass


class Outbox:
    """Messages that wait to be sent."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        *,
        backlog_bytes: Callable[[], int] = no_backlog,
        pause_reading: Callable[[], None] = do_nothing,
        resume_reading: Callable[[], None] = do_nothing,
    ) -> None:
        self._send = send
        self._backlog_bytes = backlog_bytes
        self._pause_reading = pause_reading
        self._resume_reading = resume_reading
        self._messages: list[bytes] = []
        self._waiting = 0
        self._flush_scheduled = False
        self._gatherers: list[Callable[[], None]] = []
        self._waiters: list[asyncio.Future[None]] = []
        self.has_paused = False
        """Whether reading is paused because the other end does not read."""

    @property
    def unsent_bytes(self) -> int:
        """In the transport, and here until the end of this iteration of the loop."""
        return self._waiting + self._backlog_bytes()

    @property
    def is_behind(self) -> bool:
        return self.unsent_bytes > MAX_BACKLOG_BYTES

    async def wait_low(self) -> None:
        """Wait until little is unsent, for senders of much data that is not urgent."""
        if self.unsent_bytes > LOW_BYTES:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def post(self, message: bytes) -> None:
        # One write for all messages of this iteration of the loop; none waits longer than that.
        self._messages.append(message)
        self._waiting += len(message)
        self._schedule()

    def before_write(self, gather: Callable[[], None]) -> None:
        """Call this once, right before the next write: what it posts leaves with that.

        For who gathers pieces that come together: without an iteration of the loop of its own.
        """
        self._gatherers.append(gather)
        self._schedule()

    def _schedule(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush_soon)

    def flush(self) -> None:
        try:
            self._gather()
        finally:
            self._write()

    def _write(self) -> None:
        if self._messages:
            data = b"".join(self._messages)
            self._messages.clear()
            self._waiting = 0
            self._send(data)
        self.drained()

    def drained(self) -> None:
        """The transport has sent something: pause or resume reading as needed."""
        unsent = self.unsent_bytes
        if not self.has_paused and unsent > MAX_UNSENT_BYTES:
            self.has_paused = True
            self._pause_reading()
        elif self.has_paused and unsent <= MAX_BACKLOG_BYTES:
            self.has_paused = False
            self._resume_reading()
        if self._waiters and unsent <= LOW_BYTES:
            self.give_up_waiting()

    def give_up_waiting(self) -> None:
        """Wake all waiters: there is room, or nobody to write to."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _flush_soon(self) -> None:
        try:
            self._gather()
        finally:
            self._flush_scheduled = False
            self.flush()

    def _gather(self) -> None:
        while self._gatherers:
            self._gatherers.pop(0)()
