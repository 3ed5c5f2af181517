"""Background tasks: a set that is awaited at shutdown, and a coalescer for repeated work.

No caller waits for this work, but every task has an owner. A `TaskSet` holds single tasks. A `Coalescer`
runs one kind of work for as long as there is some, never twice at once, and has no task while there is none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from laneway.base.errors import LanewayError

log = logging.getLogger(__name__)

LINGER_S = 0.05
"""Between a change and its writing, so that no call waits for the disk and later changes are written along.
A process that is killed loses this much of its records, never a session."""

T = TypeVar("T")


class TaskSet:
    """Tasks that run in the background until `wait` or `cancel`. Errors that are bugs are logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, LanewayError):
            # A LanewayError is for whoever awaits the task.
            log.error("%s failed", task.get_name(), exc_info=error)

    async def wait(self) -> None:
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def cancel(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await self.wait()


class Coalescer:
    """Runs `work` after `stir`, once for all calls that come while it waits or runs."""

    def __init__(
        self,
        work: Callable[[], Awaitable[None]],
        tasks: TaskSet,
        name: str,
        *,
        linger_s: float = LINGER_S,
    ) -> None:
        self._work = work
        self._tasks = tasks
        self._name = name
        self._linger_s = linger_s
        self._is_due = False
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def stir(self) -> None:
        """There is something to do."""
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = self._tasks.spawn(self._run(), self._name)

    async def _run(self) -> None:
        while self._is_due:
            await self._linger()
            self._is_due = False
            await self._work()

    async def _linger(self) -> None:
        if not self._linger_s:
            return
        try:
            async with asyncio.timeout(self._linger_s):
                await self._hurry.wait()
        except TimeoutError:
            pass

    async def wait(self) -> None:
        """Wait until everything requested so far is done or has failed."""
        self._hurry.set()
        while self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))
        self._hurry.clear()
