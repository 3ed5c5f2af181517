"""A job whose supervisor was killed before it began: nothing has happened, so it goes back to the queue."""

from __future__ import annotations

from pathlib import Path

from laneway.jobs.model import Job
from laneway.jobs.recovery import MAX_FALSE_STARTS, end_lost
from laneway.jobs.service import Jobs
from tests.jobs.stage import reading, stage


def chosen(jobs: Jobs) -> Job:
    """As the dispatcher leaves a job if it is killed before it has started the supervisor."""
    job = jobs.spawn(reading("%say At last."))
    assert jobs.ledger.change(job.job_id, expects=("queued",), status="starting", started_at=1.0)
    return jobs.get(job.job_id)


async def test_it_is_queued_and_started_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = chosen(jobs)
        assert not end_lost(here.places, jobs.ledger, job)
        queued = jobs.get(job.job_id)
        assert (queued.status, queued.started_at) == ("queued", 0.0)
        (ended,) = await here.ended(jobs, job)
        assert (ended.status, ended.attempt) == ("succeeded", 1)


async def test_after_some_times_it_is_lost_and_so_is_one_whose_supervisor_said_anything(
    tmp_path: Path,
) -> None:
    """Else a machine that cannot start supervisors would try for ever."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = chosen(jobs)
        for _ in range(MAX_FALSE_STARTS):
            assert not end_lost(here.places, jobs.ledger, jobs.get(job.job_id))
            assert jobs.ledger.change(job.job_id, expects=("queued",), status="starting")
        assert end_lost(here.places, jobs.ledger, jobs.get(job.job_id))
        assert jobs.get(job.job_id).status == "lost"
        other = chosen(jobs)
        here.places.job(other.job_id).supervisor_log.write_text("Traceback")
        assert end_lost(here.places, jobs.ledger, other)
        assert jobs.get(other.job_id).status == "lost"


async def test_one_that_was_cancelled_meanwhile_is_not_started(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = chosen(jobs)
        assert jobs.cancel(job.job_id).status == "cancelling"
        assert end_lost(here.places, jobs.ledger, jobs.get(job.job_id))
        assert jobs.get(job.job_id).has_ended
        assert here.requests == []
