"""The tokens that a list of jobs tells: of today, of the last days, and of each run."""

from __future__ import annotations

import time
from pathlib import Path

from laneway.jobs.ledger import Totals
from laneway.jobs.listing import DAYS, JobFilter, listed
from laneway.jobs.model import Job
from laneway.jobs.service import LOCAL, Jobs
from tests.jobs.stage import reading, spawn, stage, writing

DAY_S = 86_400
ANN = "http:ann"


def totals(jobs: Jobs, owner: str = LOCAL) -> Totals:
    return listed(jobs, owner, JobFilter(limit=1)).totals


def date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def create_at(jobs: Jobs, job: Job, seconds: float) -> None:
    """As if it had been started then."""
    jobs.ledger.database.write(
        lambda c: c.execute("UPDATE jobs SET created_at = ? WHERE job_id = ?", (seconds, job.job_id))
    )


async def test_tokens_are_told_by_day_and_by_run_and_nobody_hears_of_those_of_others(tmp_path: Path) -> None:
    """Of all jobs, whatever page is asked for; a caller other than the user sees its own."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        first = spawn(jobs, writing("%usage 1000\n%patch one.txt 1\n%say Done."))
        second = spawn(jobs, writing("%usage 2000\n%patch two.txt 2\n%say Done."))
        other = spawn(jobs, reading("%usage 400\n%say Seen."))
        of_ann = spawn(jobs, reading("%usage 50\n%say Seen."), owner=ANN)
        ended = await here.ended(jobs, first, second, other, of_ann)
        used = [job.tokens for job in ended]
        assert min(used) > 0
        today = date(ended[0].created_at)
        run = ended[0].run_id
        assert totals(jobs) == Totals(sum(used), {today: sum(used)}, {run: used[0] + used[1]})
        assert totals(jobs, ANN) == Totals(used[3], {today: used[3]}, {})
        assert totals(jobs, "http:bob") == Totals(0, {}, {})

        then = ended[2].created_at - 3 * DAY_S
        create_at(jobs, other, then)
        less = sum(used) - used[2]
        assert totals(jobs) == Totals(less, {today: less, date(then): used[2]}, {run: used[0] + used[1]})
        assert list(totals(jobs).by_day) == [today, date(then)]
        create_at(jobs, other, then - DAYS * DAY_S)
        assert totals(jobs).by_day == {today: less}
