"""The numbered events that the page tells browsers, kept for a while so that a lost connection can resume.

One log for all browsers: a reader is a position in it, so that a hundred that do not read cost nothing, and
slow nobody down. Whoever has fallen out of what is kept is told to read everything anew (`reset`).
"""

from __future__ import annotations

import asyncio
import secrets

import msgspec

from laneway.doors.http.streams import RETRY_MS, event_position

MAX_KEPT_BYTES = 4 * 1024 * 1024
"""Of events, for all browsers together: minutes of a busy conversation."""
MAX_KEPT = 20_000
"""Events."""
TAKE_BYTES = 64 * 1024
"""At once, for one reader: what a socket takes without waiting."""


class EventFeed:
    """Appends events and hands them to readers. Numbers are `RUN.NUMBER`: another process has another run."""

    def __init__(self, run: str | None = None) -> None:
        self.run = run or secrets.token_hex(4)
        self._events: list[bytes] = []
        self._forgotten = 0
        self._kept_bytes = 0
        self._readers: set[FeedReader] = set()
        self._watched = asyncio.Event()
        self._is_ended = False

    def of(self, part: str) -> FeedOfPart:
        return FeedOfPart(self, part)

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._forgotten + len(self._events)

    @property
    def position(self) -> str:
        return f"{self.run}.{self.last}"

    @property
    def first_kept(self) -> int:
        return self._forgotten + 1

    @property
    def is_ended(self) -> bool:
        return self._is_ended

    def publish(self, part: str, topic: str, data: object) -> None:
        number = self.last + 1
        body = msgspec.json.encode({"part": part, "topic": topic, "data": data})
        event = b"id: %s.%d\ndata: %s\n\n" % (self.run.encode(), number, body)
        self._events.append(event)
        self._kept_bytes += len(event)
        if self._kept_bytes > MAX_KEPT_BYTES or len(self._events) > MAX_KEPT:
            self._forget()
        self._wake()

    def end(self) -> None:
        """The server closes: streams end."""
        self._is_ended = True
        self._wake()

    def attach(self, after: str | None) -> FeedReader:
        """Read from after this position on; none, or one that is not kept: from now on."""
        reader = FeedReader(self, after)
        self._readers.add(reader)
        self._watched.set()
        return reader

    def detach(self, reader: FeedReader) -> None:
        self._readers.discard(reader)
        if not self._readers:
            self._watched.clear()

    @property
    def is_watched(self) -> bool:
        return bool(self._readers)

    async def wait_watched(self) -> None:
        await self._watched.wait()

    def events_after(self, number: int, max_bytes: int = TAKE_BYTES) -> tuple[list[bytes], int]:
        """The next events, about this many bytes of them, and the number of the last one."""
        at = number - self._forgotten
        taken: list[bytes] = []
        size = 0
        while at < len(self._events) and (not taken or size + len(self._events[at]) <= max_bytes):
            taken.append(self._events[at])
            size += len(self._events[at])
            at += 1
        return taken, self._forgotten + at

    def _forget(self) -> None:
        """Drop a quarter at a time, so that each event is moved a few times at most."""
        drop = 0
        while len(self._events) - drop > 1 and (
            self._kept_bytes > MAX_KEPT_BYTES * 3 // 4 or len(self._events) - drop > MAX_KEPT * 3 // 4
        ):
            self._kept_bytes -= len(self._events[drop])
            drop += 1
        del self._events[:drop]
        self._forgotten += drop

    def _wake(self) -> None:
        for reader in self._readers:
            reader.wake()


class FeedOfPart:
    """The `PageFeed` of one part."""

    def __init__(self, feed: EventFeed, part: str) -> None:
        self._feed = feed
        self._part = part

    def publish(self, topic: str, data: object) -> None:
        self._feed.publish(self._part, topic, data)

    @property
    def is_watched(self) -> bool:
        return self._feed.is_watched

    async def wait_watched(self) -> None:
        await self._feed.wait_watched()


class FeedReader:
    """One connection that reads the feed: a position, and whether it was lost."""

    def __init__(self, feed: EventFeed, after: str | None) -> None:
        self._feed = feed
        self._woken = asyncio.Event()
        self.has_left = False
        position = event_position(after) if after else None
        is_ours = position is not None and position[0] == feed.run and position[1] <= feed.last
        self._at = position[1] if position is not None and is_ours else feed.last
        self._is_lost = after is not None and not is_ours

    def wake(self) -> None:
        self._woken.set()

    def leave(self) -> None:
        self.has_left = True
        self.wake()

    @property
    def is_over(self) -> bool:
        return self.has_left or self._feed.is_ended

    @property
    def _must_reset(self) -> bool:
        return self._is_lost or self._at + 1 < self._feed.first_kept

    def opening(self) -> bytes:
        """What a stream begins with: where it stands, so that it can be resumed before the first event."""
        if self._must_reset:
            return b"retry: %d\n\n" % RETRY_MS
        return b"retry: %d\nevent: hello\nid: %s.%d\ndata: {}\n\n" % (
            RETRY_MS,
            self._feed.run.encode(),
            self._at,
        )

    def take(self) -> bytes:
        """What is to be sent next; empty if nothing is."""
        if self._must_reset:
            self._is_lost = False
            self._at = self._feed.last
            return b"event: reset\nid: %s\ndata: {}\n\n" % self._feed.position.encode()
        events, self._at = self._feed.events_after(self._at)
        return b"".join(events)

    async def wait(self, timeout_s: float) -> None:
        """Until something was published, the reader leaves, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                while not (self.is_over or self._feed.last > self._at or self._is_lost):
                    self._woken.clear()
                    await self._woken.wait()
        except TimeoutError:
            return
