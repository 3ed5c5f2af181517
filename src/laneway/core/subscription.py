"""A bounded buffer of events for one subscriber, which never blocks the engine's reader.

The engine's reader pushes, the subscriber takes. Text deltas of one item that wait together are
merged into one event; nothing is delayed in order to be merged. A subscriber that falls too far
behind loses deltas and details, which are counted, but never the events that it must act upon.
"""

from __future__ import annotations

import asyncio
from collections import deque

from laneway.core.model import (
    DELTAS,
    Asked,
    Closed,
    EngineGone,
    Event,
    Output,
    Text,
    Thought,
    TurnDone,
    TurnStarted,
    Withdrawn,
)

MAX_EVENTS = 4096
"""Events that may wait: some seconds of the busiest turn. A subscriber this late has stopped reading."""
MAX_TEXT_CHARS = 4 * 1024 * 1024
"""Text that may wait in merged deltas."""
MUST_ARRIVE = (TurnStarted, TurnDone, Asked, Withdrawn, EngineGone, Closed)
"""Never dropped. There are few of them: their number is bounded by turns and questions."""


class _Run:
    """Deltas of one item that wait together."""

    __slots__ = ("first", "item_id", "kind", "parts")

    def __init__(self, first: Text | Thought | Output) -> None:
        self.first = first
        self.kind = type(first)
        self.item_id = first.item_id
        self.parts = [first.text]

    def event(self) -> Event:
        if len(self.parts) == 1:
            return self.first
        return self.kind(turn_id=self.first.turn_id, item_id=self.item_id, text="".join(self.parts))


class Subscription:
    """`async for event in subscription`, or `take()` for all that waits. Ends after `close`."""

    def __init__(self, *, merge: bool = True) -> None:
        self._merge = merge
        self._waiting: deque[Event | _Run] = deque()
        self._text_chars = 0
        self._reader: asyncio.Future[None] | None = None
        self._is_closed = False
        self.lost = 0

    def push(self, event: Event) -> None:
        """Add an event. Called on the engine's reader."""
        if self._is_closed:
            return
        waiting = self._waiting
        if self._merge and type(event) in DELTAS:
            self._push_delta(event)  # type: ignore[arg-type]
        elif len(waiting) < MAX_EVENTS or isinstance(event, MUST_ARRIVE):
            waiting.append(event)
        else:
            self.lost += 1
        if self._reader is not None:
            self._wake()

    def _push_delta(self, event: Text | Thought | Output) -> None:
        waiting = self._waiting
        if self._text_chars + len(event.text) > MAX_TEXT_CHARS:
            self.lost += 1
            return
        if waiting:
            last = waiting[-1]
            if type(last) is _Run and last.item_id == event.item_id and last.kind is type(event):
                last.parts.append(event.text)
                self._text_chars += len(event.text)
                return
            if len(waiting) >= MAX_EVENTS:
                self.lost += 1
                return
        waiting.append(_Run(event))
        self._text_chars += len(event.text)

    def close(self) -> None:
        """No more events will come; those that wait can still be taken."""
        self._is_closed = True
        self._wake()

    def take(self) -> list[Event]:
        """All events that wait, at once."""
        events = [_event(entry) for entry in self._waiting]
        self._waiting.clear()
        self._text_chars = 0
        return events

    async def wait(self) -> list[Event]:
        """At least one event, as soon as there is one; an empty list means the end."""
        await self._wait_for_some()
        return self.take()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        # One at a time: a subscriber that stops in the middle and comes back has lost nothing.
        if not self._waiting:
            await self._wait_for_some()
            if not self._waiting:
                raise StopAsyncIteration
        entry = self._waiting.popleft()
        if type(entry) is _Run:
            self._text_chars -= sum(map(len, entry.parts))
        return _event(entry)

    async def _wait_for_some(self) -> None:
        while not self._waiting and not self._is_closed:
            if self._reader is not None:
                raise RuntimeError("a subscription has one reader")
            # A bare future: an Event costs twice as much a wake-up, and there is one for every few words.
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


def _event(entry: Event | _Run) -> Event:
    return entry.event() if isinstance(entry, _Run) else entry
