"""Prompts of one session in the order in which they came, one at a time.

Synchronous at both ends: a prompt has its place before anything that the client sent after it is
looked at, so that a cancel that follows it cancels it. While a question stands in the conversation,
only those who came after it go ahead: the others were not meant as its answer, and wait.
"""

from __future__ import annotations

import asyncio

from laneway.base.errors import LimitReached

MAX_WAITING = 64
"""Prompts behind the one that is served: more is a client that does not wait for answers."""


class QueuePlace:
    def __init__(self, number: int, *, is_prompt: bool) -> None:
        self.number = number
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

    def wait_again(self) -> None:
        if not self.is_cancelled:
            self._reached = asyncio.get_running_loop().create_future()


class PromptQueue:
    def __init__(self) -> None:
        self.current: QueuePlace | None = None
        """The one that is served."""
        self._places: list[QueuePlace] = []
        self._joined = 0
        self._held = 0
        """The number of the last one that came before the question."""

    @property
    def is_cancelling(self) -> bool:
        """Whether the client takes back what is served, and knows why nothing comes of it."""
        return self.current is not None and self.current.is_cancelled

    def join(self, *, is_prompt: bool = True) -> QueuePlace:
        """At the end. What is no prompt waits likewise, but no cancel is for it, and no question holds it."""
        if len(self._places) > MAX_WAITING:
            raise LimitReached("waiting prompts", MAX_WAITING)
        self._joined += 1
        place = QueuePlace(self._joined, is_prompt=is_prompt)
        self._places.append(place)
        self._call_next()
        return place

    def leave(self, place: QueuePlace) -> None:
        self._places.remove(place)
        self._free(place)

    def step_back(self, place: QueuePlace) -> None:
        """It was too early after all; others may be served before it."""
        place.wait_again()
        self._free(place)

    def cancel(self) -> None:
        """All prompts: those who wait are called at once, to leave."""
        for place in filter(lambda each: each.is_prompt, self._places):
            place.is_cancelled = True
            place.call()

    # ── while a question stands in the conversation ────────────────────────

    def hold(self) -> None:
        """It has just been said: who has a place already does not answer it."""
        self._held = self._joined

    def let_go(self) -> None:
        """It is settled."""
        self._held = 0
        self._call_next()

    def may_go(self, place: QueuePlace) -> bool:
        return place.number > self._held or not place.is_prompt

    def _free(self, place: QueuePlace) -> None:
        if place is self.current:
            self.current = None
            self._call_next()

    def _call_next(self) -> None:
        if self.current is None:
            self.current = next(filter(self.may_go, self._places), None)
            if self.current is not None:
                self.current.call()
