"""Writes session records and audit lines in the background, so that no caller waits for the disk."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from laneway.base.errors import StoreError
from laneway.core.background import Coalescer, TaskSet
from laneway.core.named.records import AuditLine, Claim, Record, Records

log = logging.getLogger(__name__)

MAX_LINES = 10_000
"""Audit lines that may wait for the disk. More means that it has been blocked for minutes."""


class RecordWriter:
    """Keeps one session's record up to date: writes the newest state and may skip those in between."""

    def __init__(self, claim: Claim, snapshot: Callable[[], Record], tasks: TaskSet) -> None:
        self._claim = claim
        self._snapshot = snapshot
        self._is_over = False
        self._coalescer = Coalescer(self._write, tasks, "record")

    def touch(self) -> None:
        if not self._is_over:
            self._coalescer.stir()

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
        await self._coalescer.wait()

    async def stop(self) -> None:
        """Nothing is written after this."""
        self._is_over = True
        await self._coalescer.wait()

    async def finish(self, last: Record, summary: str | None) -> None:
        """Write the summary and the final record."""
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


class AuditWriter:
    """Writes audit lines in their order, many at a time. Those that cannot be written are counted."""

    def __init__(self, records: Records, tasks: TaskSet) -> None:
        self._records = records
        self._lines: deque[AuditLine] = deque()
        self._lost = 0
        """Lines that were not written since the log last took some."""
        self._coalescer = Coalescer(self._write, tasks, "audit")

    def line(self, line: AuditLine) -> None:
        if len(self._lines) >= MAX_LINES:
            log.error("The audit log is %d lines behind; a line of %s is lost", MAX_LINES, line.agent_id)
            return
        self._lines.append(line)
        self._coalescer.stir()

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
        """Write everything that waits, as far as that is possible."""
        await self._coalescer.wait()

    async def finish(self) -> None:
        """Flush at shutdown, and log how many lines were lost."""
        await self.flush()
        self._tell_lost()
