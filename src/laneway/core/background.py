"""Work that nobody waits for: owned by somebody all the same, and waited for at the end.

`Chores` are single tasks. A `Drain` does its work for as long as there is some, never twice at
once, and has no task while there is none. The two `Drain`s here write: records and audit lines.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from laneway.base.errors import LanewayError, StoreError
from laneway.core.records import AuditLine, Claim, Record, Records

log = logging.getLogger(__name__)

MAX_LINES = 10_000
"""Audit lines that may wait for the disk. More means that it has stood still for minutes."""

LINGER_S = 0.05
"""Between a change and its writing, so that no call waits behind a disk: what else changes meanwhile is
written along. A process that is killed loses this much of its books, never of its sessions."""

T = TypeVar("T")


class Chores:
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
            log.error("%s failed", task.get_name(), exc_info=error)  # else whoever waits is told

    async def wait(self) -> None:
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))


class Drain:
    def __init__(
        self,
        work: Callable[[], Awaitable[None]],
        chores: Chores,
        name: str,
        *,
        linger_s: float = LINGER_S,
    ) -> None:
        self._work = work
        self._chores = chores
        self._name = name
        self._linger_s = linger_s
        self._is_due = False
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def stir(self) -> None:
        """There is something to do."""
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = self._chores.spawn(self._run(), self._name)

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
        """Until all that was asked for so far is done, or has failed."""
        self._hurry.set()
        while self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))
        self._hurry.clear()


class Keeper:
    """Keeps one session's record up to date: the newest state is written, what came between need not be."""

    def __init__(self, claim: Claim, snapshot: Callable[[], Record], chores: Chores) -> None:
        self._claim = claim
        self._snapshot = snapshot
        self._is_over = False
        self._drain = Drain(self._write, chores, "record")

    def touch(self) -> None:
        if not self._is_over:
            self._drain.stir()

    async def _write(self) -> None:
        if self._is_over:
            return
        record = self._snapshot()
        try:
            await self._claim.put(record)
        except StoreError as problem:
            # The next change tries again; the session itself goes on.
            log.warning("The record of %s was not written: %s", record.agent_id, problem)

    async def flush(self) -> None:
        await self._drain.wait()

    async def stop(self) -> None:
        """Nothing is written after this."""
        self._is_over = True
        await self._drain.wait()

    async def finish(self, last: Record, summary: str | None) -> None:
        """The last word about the session."""
        await self.stop()
        try:
            if summary is not None and last.thread_id is not None:
                await self._claim.write_summary(last.thread_id, summary)
        except StoreError as problem:
            log.error("The summary of %s was not written: %s", last.agent_id, problem)
        try:
            await self._claim.put(last)
        except StoreError as problem:
            log.error("The end of %s was not written: %s", last.agent_id, problem)


class Scribe:
    """Writes audit lines in their order, many at a time. Those that cannot be written are counted."""

    def __init__(self, records: Records, chores: Chores) -> None:
        self._records = records
        self._lines: deque[AuditLine] = deque()
        self._lost = 0
        """Lines that were not written since the log last took some."""
        self._drain = Drain(self._write, chores, "audit")

    def line(self, line: AuditLine) -> None:
        if len(self._lines) >= MAX_LINES:
            log.error("The audit log is %d lines behind; a line of %s is lost", MAX_LINES, line.agent_id)
            return
        self._lines.append(line)
        self._drain.stir()

    async def _write(self) -> None:
        lines = tuple(self._lines)
        self._lines.clear()
        try:
            await self._records.audit(lines)
        except StoreError as problem:
            if not self._lost:
                # Once: it will be the same with the next ones, and there may be thousands.
                log.error("Audit lines are not written: %s", problem)
            self._lost += len(lines)
        else:
            self._tell_lost()

    def _tell_lost(self) -> None:
        if self._lost:
            log.error("Audit lines that were not written: %d", self._lost)
            self._lost = 0

    async def flush(self) -> None:
        """All that can be written is."""
        await self._drain.wait()

    async def finish(self) -> None:
        """The same at the very end."""
        await self.flush()
        self._tell_lost()
