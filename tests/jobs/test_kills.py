"""kill -9 of whatever belongs to a job: it ends all the same, and nothing of it is left."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from laneway.jobs.model import Job, JobLimits
from laneway.jobs.processes import marked
from laneway.jobs.slots import Slots
from laneway.wire.guardian import descendants
from tests.jobs.stage import Stage, reading, spawn, stage, writing
from tests.wire.support import linux_only

ROUNDS = 60 if os.environ.get("LANEWAY_CHAOS") else 3
LIMITS = JobLimits(read=1, write=1, total=2)


def supervisor_of(job_id: str) -> int:
    """Its pid, by its command line."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path("/proc", name, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"laneway.app.job_supervisor" in words and job_id.encode() in words:
                return int(name)
    raise AssertionError(f"{job_id} has no supervisor")


def processes_of(job: Job) -> dict[str, int]:
    """Supervisor, guardian and worker."""
    supervisor = supervisor_of(job.job_id)
    parents = {
        pid: int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        for pid in descendants(supervisor)
    }
    guardian = next(pid for pid, parent in parents.items() if parent == supervisor)
    worker = next(pid for pid, parent in parents.items() if parent == guardian)
    return {"supervisor": supervisor, "guardian": guardian, "worker": worker}


async def nothing_is_left(here: Stage, job: Job) -> None:
    """No process with its mark, no slot held, and one end in the log."""
    jobs = here.jobs(LIMITS)
    (ended,) = await here.ended(jobs, job)
    assert ended.has_ended
    assert here.events(jobs, ended)[-1]["content"]["status"] == ended.status
    assert list(marked(job.job_id)) == []
    next_job = spawn(jobs, reading("%say next"))
    (after,) = await here.ended(jobs, next_job)
    assert after.status == "succeeded", here.log_of(next_job.job_id)

    # The supervisor writes the end before it goes, and its slots go with it.
    async def free() -> bool:
        return Slots(here.places.slots).taken(LIMITS) == {"total": 0, "read": 0, "write": 0}

    while not await free():
        assert ended.has_ended


@linux_only
@pytest.mark.parametrize(
    ("killed", "statuses"),
    [
        (("supervisor",), ("lost",)),
        (("guardian",), ("failed",)),
        (("worker",), ("failed",)),
        (("supervisor", "guardian"), ("lost",)),
        (("guardian", "supervisor", "worker"), ("lost",)),
    ],
    ids=" and ".join,
)
async def test_a_job_whose_process_is_killed_ends_and_frees_its_slot(
    tmp_path: Path, killed: tuple[str, ...], statuses: tuple[str, ...]
) -> None:
    """Whoever looks next writes the end where the supervisor cannot."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(LIMITS)
        job = spawn(jobs, writing("%patch x 1\n%run sleep 1000"))
        await here.until(jobs, job, lambda each: "sleep" in each.activity)
        pids = processes_of(job)
        for name in killed:
            os.kill(pids[name], signal.SIGKILL)
        await nothing_is_left(here, job)
        ended = jobs.get(job.job_id)
        assert ended.status in statuses, (ended, here.log_of(job.job_id))
        if ended.status == "lost":
            assert ended.is_inconsistent
        assert [each.path for each in here.result(jobs, ended).modified_files] == ["x"]


@linux_only
async def test_whenever_a_job_is_killed_it_ends(tmp_path: Path) -> None:
    """At any moment: while it starts, works or ends; supervisor, guardian, worker, or several at once."""
    chance = random.Random()
    async with stage(tmp_path) as here:
        jobs = here.jobs(LIMITS)
        for number in range(ROUNDS):
            job = spawn(jobs, writing(f"%patch f{number} 1\n%run true\n%patch g{number} 2\n%say Done."))
            for _ in range(chance.randrange(400)):
                jobs.get(job.job_id)  # some time passes
            try:
                pids = list(processes_of(job).values())
            except (AssertionError, StopIteration, OSError):
                pids = []  # it has ended, or has not begun
            for pid in chance.sample(pids, chance.randrange(len(pids) + 1)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            (ended,) = await here.ended(jobs, job)
            assert ended.status in ("succeeded", "failed", "lost"), ended
            assert list(marked(job.job_id)) == []
            here.events(jobs, ended)
        assert jobs.unfinished() == []
