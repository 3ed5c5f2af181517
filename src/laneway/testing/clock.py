"""Clocks for tests: one that stands still until a test moves it, and one that goes faster."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable


class HandClock:
    """The clock port for tests."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()

    def now(self) -> float:
        return self._now

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        number = next(self._order)
        heapq.heappush(self._waiting, (self._now + seconds, number, callback))
        return lambda: self._cancelled.add(number)

    def advance(self, seconds: float) -> None:
        """Let time pass; whatever is due is called in order."""
        end = self._now + seconds
        while self._waiting and self._waiting[0][0] <= end:
            self._now, number, callback = heapq.heappop(self._waiting)
            if number not in self._cancelled:
                callback()
        self._now = end


class QuickClock:
    """The loop's clock, so many times as fast: what is paced in seconds takes milliseconds."""

    def __init__(self, speed: float = 40.0) -> None:
        self._speed = speed

    def now(self) -> float:
        return asyncio.get_running_loop().time() * self._speed

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_later(seconds / self._speed, callback).cancel
