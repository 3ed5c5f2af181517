"""Which real jobs wait for each other, and that one that waits is nothing but a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.jobs.model import JobLimits
from tests.jobs.killing import processes_of
from tests.jobs.stage import spawn, stage, writing
from tests.jobs.test_resolving import held


@pytest.mark.covers("J-supervision.1", "J-a2.21")
async def test_jobs_whose_scopes_meet_run_one_after_the_other_and_all_others_at_once(tmp_path: Path) -> None:
    """A queued one has no process, and no place. `overlap` waives it, and so does a job without a scope."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(JobLimits(read=1, write=4, total=5))
        go = here.state / "go"
        first = spawn(jobs, writing(held("%patch src/a 1", go), scope=("src/**",)))
        await here.until(jobs, first, lambda job: "until test" in job.activity)
        behind = spawn(jobs, writing("%patch src/b 1", scope=("src/b",)))
        beside = [
            spawn(jobs, writing("%patch docs/x 1", scope=("docs",))),
            spawn(jobs, writing("%patch src/c 1", scope=("src/c",), overlap="allow")),
            spawn(jobs, writing("%patch d 1")),
        ]
        await here.ended(jobs, *beside)
        assert jobs.get(behind.job_id).status == "queued"
        assert processes_of(behind.job_id) == {}
        assert jobs.get(first.job_id).status == "running"
        go.touch()
        one, other = await here.ended(jobs, first, behind)
        assert (one.status, other.status) == ("succeeded", "succeeded"), here.log_of(behind.job_id)
        assert one.ended_at <= other.started_at
