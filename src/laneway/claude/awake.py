"""Limits how many threads of an engine have a running process: the longest idle are ended first.

A sleeping thread has no process and wakes by resuming its session with the next turn. One that works,
waits for an answer, or has something running in the background does not sleep.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

IDLE_S = 600.0
"""After so long without a turn a thread sleeps: each process takes some 130 MB."""
MAX_AWAKE = 8
"""Threads that may be awake while they are idle."""

BUSY_LOOK_S = 1.0
"""At the earliest after this, one that works is looked at again: not every end of work is told."""


class Sleeper(Protocol):
    """A thread with a process that may sleep."""

    @property
    def is_awake(self) -> bool: ...

    @property
    def is_idle(self) -> bool:
        """Awake, with nothing to do."""
        ...

    async def sleep(self) -> None:
        """End the process, if it is still idle."""
        ...

    async def release(self) -> None:
        """End the process, whatever it does."""
        ...


class AwakeThreads:
    def __init__(self, idle_s: float = IDLE_S, max_awake: int = MAX_AWAKE) -> None:
        self._idle_s = idle_s
        self._max_awake = max_awake
        self._used_at: dict[Sleeper, float] = {}
        """Those that are awake, the longest unused first."""
        self._timer: asyncio.TimerHandle | None = None
        self._sleeping: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        return len(self._used_at)

    def use(self, thread: Sleeper) -> None:
        """A thread has woken, or a turn of it has begun or ended."""
        self._used_at.pop(thread, None)
        self._used_at[thread] = asyncio.get_running_loop().time()
        self._look()

    def drop(self, thread: Sleeper) -> None:
        """A thread has no process any more."""
        self._used_at.pop(thread, None)

    def _look(self) -> None:
        """Let sleep who may, and come back when the next one may."""
        loop = asyncio.get_running_loop()
        excess = len(self._used_at) - self._max_awake
        next_at: float | None = None
        for thread, used_at in list(self._used_at.items()):
            if not thread.is_idle:
                look_at = loop.time() + max(self._idle_s, BUSY_LOOK_S)
                next_at = look_at if next_at is None else min(next_at, look_at)
                continue
            sleeps_at = used_at + self._idle_s
            if excess > 0 or sleeps_at <= loop.time():
                excess -= 1
                self.drop(thread)
                task = loop.create_task(thread.sleep())
                self._sleeping.add(task)
                task.add_done_callback(self._sleeping.discard)
            else:
                next_at = sleeps_at if next_at is None else min(next_at, sleeps_at)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if next_at is None else loop.call_at(next_at, self._look)

    async def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*self._sleeping, return_exceptions=True)
