"""Which run is meant, what may run again, and that nobody accepts what another one is giving back."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.base.errors import UsageError
from laneway.jobs.model import Job
from laneway.jobs.places import new_job_id
from laneway.jobs.runs import ROLLBACK_LOCK, TreeRuns
from laneway.jobs.slots import held
from tests.jobs.stage import spawn, stage, writing
from tests.jobs.test_resolving import asked


@pytest.mark.covers("J-a2.14")
async def test_a_run_is_found_by_whatever_name_its_folder_has(tmp_path: Path) -> None:
    """Through a link, and by a folder that the job has deleted: those that a rollback gives back, too."""
    async with stage(tmp_path) as here:
        link = tmp_path / "link"
        link.symlink_to(here.work)
        (here.work / "old").mkdir()
        here.write(**{"old/x.txt": "x\n"})
        jobs = here.jobs()
        job = spawn(jobs, writing("%run rm -r old", cwd=str(link)))
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "succeeded", here.log_of(job.job_id)
        assert not (here.work / "old").exists()
        for folder in (link, link / "old", here.work / "old"):
            assert asked(jobs, "show", cwd=str(folder))["run"] == ended.run_id
        assert asked(jobs, "rollback", cwd=str(link / "old"))["ending"] == "done"
        assert (here.work / "old" / "x.txt").read_text() == "x\n"
        for nowhere in ("/", "a\0b", "~nobody-at-all"):
            with pytest.raises(UsageError, match=r"git repository|no open run"):
                asked(jobs, "accept", cwd=nowhere)


async def test_a_job_that_went_on_in_a_thread_does_not_run_again_without_it(tmp_path: Path) -> None:
    """Alone its prompt means nothing; in the thread its answer stands behind it. Nothing is given back."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        first = spawn(jobs, writing("%edit a.txt a => one"))
        await here.ended(jobs, first)
        second = jobs.send(first.job_id, "%edit a.txt one => two")
        jobs.dispatch()
        await here.ended(jobs, second)
        with pytest.raises(UsageError, match="went on in the thread of another one"):
            asked(jobs, "rerun", job_ids=(first.job_id, second.job_id))
        assert (here.work / "a.txt").read_text() == "two\n"
        assert len(jobs.ledger.listed()) == 2


@pytest.mark.covers("J-a2.16")
async def test_nothing_is_accepted_while_another_process_gives_it_back_or_a_job_begins(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = spawn(jobs, writing("%edit a.txt a => one"))
        (ended,) = await here.ended(jobs, job)
        runs = TreeRuns(jobs.places, jobs.ledger, ended.tree)
        with held(runs.folder / ROLLBACK_LOCK) as is_ours:
            assert is_ours
            with pytest.raises(UsageError, match="Another process is rolling back in this tree"):
                asked(jobs, "accept")
        # One that a dispatcher has just started: it will belong to this run, and is not of it yet.
        begun = jobs.ledger.add(
            Job(job_id=new_job_id(), number=0, owner="local", mode="write", status="queued", tree=ended.tree)
        )
        jobs.ledger.change(begun.job_id, expects=("queued",), status="starting")
        with pytest.raises(UsageError, match=f"Job {begun.job_id} is writing in"):
            asked(jobs, "accept")
        jobs.ledger.end(begun.job_id, "cancelled")
        assert asked(jobs, "accept")["accepted"]
