"""Waits until jobs have ended: the long polls `wait_any` and `wait_all`.

A waiter looks at the time of one small file (the bell) a few times a second, and at the ledger only when
that has changed; every few seconds in any case, which also ends jobs whose supervisor died.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from laneway.core.ports import Clock
from laneway.jobs import wait_cursor
from laneway.jobs.model import Job

WAIT_S = 45.0
"""By default: below the 60 seconds after which some clients give a call up."""
MAX_WAIT_S = 240.0
LOOK_S = 0.02
"""Between two looks at the bell, which cost microseconds each."""
ROUND_S = 5.0
"""Between two looks at the ledger although nothing rang."""

Until: TypeAlias = Literal["any", "all"]


class Waited(msgspec.Struct, frozen=True):
    """What a wait found."""

    ended: tuple[Job, ...]
    """Jobs that ended and that the cursor did not have, in the order of their ends."""
    pending: tuple[str, ...]
    next_cursor: str
    is_satisfied: bool


def judge(jobs: Sequence[Job], cursor: str | None, until: Until) -> Waited:
    """Pure: what a wait for these jobs finds now.

    Satisfied when one has ended that the cursor does not have (`any`), or when none is unfinished (`all`).
    A wait for jobs that have all been told is satisfied, too: nothing will come any more.
    """
    ended = sorted((job for job in jobs if job.has_ended), key=lambda job: job.ended_number)
    new = tuple(job for job in ended if not wait_cursor.has(cursor, job.ended_number))
    pending = tuple(job.job_id for job in jobs if not job.has_ended)
    is_satisfied = not pending or (until == "any" and bool(new))
    following = wait_cursor.extended(cursor, (job.ended_number for job in new))
    return Waited(new, pending, following, is_satisfied)


class Waiter:
    """Waits for jobs of one `read`, which looks at the ledger and ends what has to be ended. It blocks."""

    def __init__(self, bell: Path, clock: Clock) -> None:
        self._bell = bell
        self._clock = clock

    async def wait(
        self,
        read: Callable[[], Sequence[Job]],
        cursor: str | None,
        until: Until,
        timeout_s: float,
        on_pending: Callable[[tuple[str, ...]], None] = lambda pending: None,
    ) -> Waited:
        """What there is when the wait is satisfied, or when its time is up."""
        deadline = self._clock.now() + timeout_s
        while True:
            rung = self._rung()
            waited = judge(await asyncio.to_thread(read), cursor, until)
            if waited.is_satisfied or self._clock.now() >= deadline:
                return waited
            on_pending(waited.pending)
            await self._rest(rung, min(deadline, self._clock.now() + ROUND_S))

    async def wait_until(self, is_over: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until this holds, which may block; whether it does."""
        deadline = self._clock.now() + timeout_s
        while True:
            rung = self._rung()
            if await asyncio.to_thread(is_over):
                return True
            if self._clock.now() >= deadline:
                return False
            await self._rest(rung, min(deadline, self._clock.now() + ROUND_S))

    async def _rest(self, rung: int, until_time: float) -> None:
        """Until the bell rings, or this time is reached."""
        while self._rung() == rung and (left_s := until_time - self._clock.now()) > 0:
            await self._pause(min(LOOK_S, left_s))

    async def _pause(self, seconds: float) -> None:
        over = asyncio.Event()
        stop = self._clock.after(seconds, over.set)
        try:
            await over.wait()
        finally:
            stop()

    def _rung(self) -> int:
        try:
            return os.stat(self._bell).st_mtime_ns
        except OSError:
            return 0
