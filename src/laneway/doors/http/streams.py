"""The stream of server-sent events in one HTTP response: numbered messages, read by one connection at a time.

A stream outlives its connection. Where the era allows it, a client that lost the connection resumes
after the last event that it saw, so sent messages are kept for a while. Notifications are dropped
when the client is far behind; requests and answers never are.
"""

from __future__ import annotations

import asyncio
from collections import deque

from laneway.wire.outbox import MAX_BACKLOG_BYTES

MAX_REPLAY_BYTES = 1024 * 1024
"""Of sent messages, kept for a client that lost its connection: more than the socket buffers hold."""
RETRY_MS = 1000
"""For a client to wait before it reconnects: a lost connection on the same machine is a restart."""
PING = b": still here\r\n\r\n"
"""A comment, because proxies between us and the client close silent connections."""


class ResponseStream:
    """Messages of one response. `name` is part of its event ids; without one it cannot be resumed."""

    def __init__(self, name: str = "", *, answers: int = 1) -> None:
        self.name = name
        self.is_ended = False
        self._answers = answers
        self._sent: deque[bytes] = deque()
        self._sent_bytes = 0
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._forgotten = 0
        self._reader: StreamReader | None = None

    # ── in ─────────────────────────────────────────────────────────────────

    def post(self, message: bytes) -> None:
        """Add a request or an answer: never dropped."""
        if not self.is_ended:
            message = _one_line(message)
            self._unsent.append(message)
            self._unsent_bytes += len(message)
            self._wake()

    def tell(self, message: bytes) -> bool:
        """Add a notification; false if it was dropped: the client is far behind, or the stream has ended."""
        if self.is_ended or self._unsent_bytes > MAX_BACKLOG_BYTES:
            return False
        self.post(message)
        return True

    def settle(self, answer: bytes | None) -> None:
        """One request is answered, or never will be (none). After the last one the stream ends."""
        if answer is not None:
            self.post(answer)
        self._answers -= 1
        if self._answers == 0:
            self.end()

    def end(self) -> None:
        self.is_ended = True
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None:
            self._reader.wake()

    # ── out ────────────────────────────────────────────────────────────────

    @property
    def is_read(self) -> bool:
        return self._reader is not None

    @property
    def only_answer(self) -> bytes | None:
        """The answer, if nothing has been sent and nothing else will be."""
        if self.is_ended and not self._sent and not self._forgotten and len(self._unsent) == 1:
            return self._unsent[0]
        return None

    def attach(self) -> StreamReader:
        """Read what was not sent yet. A previous reader has lost its connection, or loses it now."""
        previous, self._reader = self._reader, StreamReader(self)
        if previous is not None:
            previous.wake()
        return self._reader

    def resume(self, after: int) -> StreamReader | None:
        """Read the messages after this number; none if they are no longer kept."""
        if not self._forgotten <= after <= self._forgotten + len(self._sent):
            return None
        while self._forgotten + len(self._sent) > after:
            message = self._sent.pop()
            self._sent_bytes -= len(message)
            self._unsent.appendleft(message)
            self._unsent_bytes += len(message)
        return self.attach()

    def detach(self, reader: StreamReader) -> None:
        if self._reader is reader:
            self._reader = None

    def is_reader(self, reader: StreamReader) -> bool:
        return self._reader is reader

    @property
    def has_more(self) -> bool:
        return bool(self._unsent)

    def take(self) -> bytes:
        """All unsent messages, as server-sent events."""
        events: list[bytes] = []
        first = self._forgotten + len(self._sent) + 1
        for number, message in enumerate(self._unsent, first):
            event_id = b"id: %s.%d\r\n" % (self.name.encode(), number) if self.name else b""
            events.append(b"event: message\r\n" + event_id + b"data: " + message + b"\r\n\r\n")
        self._sent.extend(self._unsent)
        self._sent_bytes += self._unsent_bytes
        self._unsent.clear()
        self._unsent_bytes = 0
        keep_bytes = MAX_REPLAY_BYTES if self.name else 0
        while self._sent_bytes > keep_bytes:
            self._sent_bytes -= len(self._sent.popleft())
            self._forgotten += 1
        return b"".join(events)

    def opening(self) -> bytes:
        """An event without a message, so that a client can resume before it has seen any."""
        number = self._forgotten + len(self._sent)
        return b"id: %s.%d\r\nretry: %d\r\ndata: \r\n\r\n" % (self.name.encode(), number, RETRY_MS)


class StreamReader:
    """One connection that reads a stream, until the stream ends, the client leaves or another attaches."""

    def __init__(self, stream: ResponseStream) -> None:
        self._stream = stream
        self._woken = asyncio.Event()
        self.has_left = False
        """Whether the client hung up."""

    def wake(self) -> None:
        self._woken.set()

    def leave(self) -> None:
        self.has_left = True
        self.wake()

    @property
    def is_over(self) -> bool:
        if self.has_left or not self._stream.is_reader(self):
            return True
        return self._stream.is_ended and not self._stream.has_more

    async def wait(self, timeout_s: float) -> bool:
        """Wait until there is something to send, or the reader is over; false after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                while not (self._stream.has_more or self.is_over):
                    self._woken.clear()
                    await self._woken.wait()
        except TimeoutError:
            return False
        return True


def event_position(event_id: str) -> tuple[str, int] | None:
    """The stream's name and the message's number in an event id; none if it is not one of ours."""
    name, dot, number = event_id.rpartition(".")
    if not dot or not (number.isascii() and number.isdigit()) or len(number) > 18:
        return None
    return name, int(number)


def _one_line(message: bytes) -> bytes:
    """Line ends inside JSON are white space; in an event they would end the data."""
    if b"\n" in message or b"\r" in message:
        return message.replace(b"\n", b" ").replace(b"\r", b" ")
    return message
