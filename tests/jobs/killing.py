"""The processes of jobs, for tests that kill them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from laneway.jobs.model import Job, JobLimits
from laneway.jobs.processes import SUPERVISOR, marked
from laneway.jobs.service import Jobs
from laneway.jobs.slots import Slots
from laneway.store.gates import gate
from laneway.wire.guardian import is_over, process_table
from tests.jobs.stage import DEADLINE_S, Stage

PAUSE_S = 0.02
"""Between two looks of a test: each reads the ledger."""


def processes_of(job_id: str) -> dict[str, int]:
    """Supervisor, guardian and worker, as far as they are there."""
    table = process_table()
    found: dict[str, int] = {}
    parent = next((pid for pid, *_ in table if _is_supervisor(pid, job_id)), None)
    for name in ("supervisor", "guardian", "worker"):
        if parent is None:
            break
        found[name] = parent
        parent = next((pid for pid, above, *_ in table if above == parent), None)
    return found


def _is_supervisor(pid: int, job_id: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return SUPERVISOR.encode() in words and job_id.encode() in words


def kill(pid: int) -> bool:
    """Whether it was still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def is_stopped(pid: int) -> bool:
    """Whether SIGSTOP has reached it."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"


def runs(pid: int) -> bool:
    """Whether anything of it runs: one that nobody has reaped is over."""
    try:
        return not is_over(str(pid))
    except OSError:
        return False


async def all_ended(here: Stage, jobs: Jobs, job_ids: Sequence[str]) -> list[Job]:
    """Wait until all have ended, and end those whose supervisors died without waiting for a tick."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            await asyncio.to_thread(jobs.look)
            found = jobs.many(job_ids)
            if all(job.has_ended for job in found):
                return found
            await asyncio.sleep(PAUSE_S)


async def nothing_is_left(here: Stage, jobs: Jobs, ended: Sequence[Job], limits: JobLimits) -> None:
    """No process with a job's mark, one end in each log, and all slots free."""
    for job in ended:
        assert list(marked(job.job_id)) == [], job
        assert here.events(jobs, job)[-1]["content"]["status"] == job.status, job
    async with asyncio.timeout(DEADLINE_S):
        # A supervisor writes the end before it goes, and its slots go with it.
        while taken(here, limits) != {"total": 0, "read": 0, "write": 0}:
            await asyncio.sleep(PAUSE_S)


def taken(here: Stage, limits: JobLimits) -> dict[str, int]:
    """Slots that are held. Looking is locking: under the dispatcher's gate."""
    with gate(here.places.dispatch_lock):
        return Slots(here.places.slots).taken(limits)
