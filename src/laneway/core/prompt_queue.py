"""Queue of one session's prompts: served one at a time, in the order in which they came.

Joining is synchronous: a prompt has its place before any later message of the client is handled, so a
cancel that follows it cancels it. While a question is open in the conversation, only prompts that came
after it are served: earlier ones were not meant as its answer, and wait.
"""

from __future__ import annotations

import asyncio

from laneway.base.errors import LimitReached

MAX_WAITING = 64
"""Prompts behind the one that is served. A client that sends more does not wait for answers."""


class QueuePlace:
    """The place of one prompt, or of other work that must wait for its turn."""

    def __init__(self, number: int, *, is_prompt: bool) -> None:
        self.number = number
        self.is_prompt = is_prompt
        self.is_cancelled = False
        self._served: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait_served(self) -> bool:
        """Wait until the queue serves this place; false if it was cancelled before that."""
        await self._served
        return not self.is_cancelled

    def serve(self) -> None:
        if not self._served.done():
            self._served.set_result(None)

    def wait_again(self) -> None:
        if not self.is_cancelled:
            self._served = asyncio.get_running_loop().create_future()


class PromptQueue:
    def __init__(self) -> None:
        self.current: QueuePlace | None = None
        """The place that is served."""
        self._places: list[QueuePlace] = []
        self._last_number = 0
        self._held_up_to = 0
        """The number of the last place that joined before the question; those up to it wait."""

    @property
    def is_cancelling(self) -> bool:
        """Whether the client has cancelled the prompt that is served, so that it needs no explanation."""
        return self.current is not None and self.current.is_cancelled

    def join(self, *, is_prompt: bool = True) -> QueuePlace:
        """Take the last place. Work that is no prompt waits too, but is never cancelled or held back."""
        if len(self._places) > MAX_WAITING:
            raise LimitReached("waiting prompts", MAX_WAITING)
        self._last_number += 1
        place = QueuePlace(self._last_number, is_prompt=is_prompt)
        self._places.append(place)
        self._serve_next()
        return place

    def leave(self, place: QueuePlace) -> None:
        self._places.remove(place)
        self._clear_current(place)

    def requeue(self, place: QueuePlace) -> None:
        """Wait again, because it was served too early; others may be served before it."""
        place.wait_again()
        self._clear_current(place)

    def cancel(self) -> None:
        """Cancel all prompts: waiting ones are served at once, so that they leave."""
        for place in filter(lambda each: each.is_prompt, self._places):
            place.is_cancelled = True
            place.serve()

    # ── while a question is open in the conversation ───────────────────────

    def hold(self) -> None:
        """A question was just asked: prompts that joined before it wait."""
        self._held_up_to = self._last_number

    def release(self) -> None:
        """The question is settled."""
        self._held_up_to = 0
        self._serve_next()

    def may_serve(self, place: QueuePlace) -> bool:
        return place.number > self._held_up_to or not place.is_prompt

    def _clear_current(self, place: QueuePlace) -> None:
        if place is self.current:
            self.current = None
            self._serve_next()

    def _serve_next(self) -> None:
        if self.current is None:
            self.current = next(filter(self.may_serve, self._places), None)
            if self.current is not None:
                self.current.serve()
