"""Prompts of one session in the order in which they came, one at a time (ruling 20).

Synchronous at both ends: a prompt has its place before anything that the client sent after it is
looked at, so that a cancel that follows it cancels it.
"""

from __future__ import annotations

import asyncio
from collections import deque

from laneway.base.errors import LimitReached

MAX_WAITING = 64
"""Prompts behind the one that is served: more is a client that does not wait for answers."""


class Place:
    def __init__(self, *, is_prompt: bool = True) -> None:
        self.is_prompt = is_prompt
        self.is_cancelled = False
        self._reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def reached(self) -> bool:
        """Wait for one's turn; false if it was cancelled before that."""
        await self._reached
        return not self.is_cancelled

    def call(self) -> None:
        if not self._reached.done():
            self._reached.set_result(None)


class Queue:
    def __init__(self) -> None:
        self._places: deque[Place] = deque()

    @property
    def current(self) -> Place | None:
        return self._places[0] if self._places else None

    def join(self, *, is_prompt: bool = True) -> Place:
        """At the end. What is no prompt waits likewise, but no cancel is for it."""
        if len(self._places) > MAX_WAITING:
            raise LimitReached("waiting prompts", MAX_WAITING)
        place = Place(is_prompt=is_prompt)
        self._places.append(place)
        if len(self._places) == 1:
            place.call()
        return place

    def leave(self, place: Place) -> None:
        was_first = self._places[0] is place
        self._places.remove(place)
        if was_first and self._places:
            self._places[0].call()

    def cancel(self) -> None:
        """All prompts: those who wait are called at once, to leave."""
        for place in filter(lambda each: each.is_prompt, self._places):
            place.is_cancelled = True
            place.call()
