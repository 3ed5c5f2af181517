"""What is removed of ended jobs, what stays, and what a collection that is killed leaves to the next one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import JobUnknown
from laneway.jobs.gc import REMOVED, choose, collect, plan
from laneway.jobs.model import Job, Run
from laneway.jobs.resolving import Resolution, resolve
from laneway.jobs.service import Jobs
from laneway.jobs.slots import held
from tests.jobs.stage import DEADLINE_S, Stage, reading, spawn, stage, writing

AGES = st.integers(0, 3)


def job(number: int, run_id: str, ended_at: float) -> Job:
    return Job(
        job_id=f"job-{number:016x}",
        number=number,
        owner="local",
        mode="write" if run_id else "read",
        status="succeeded" if ended_at else "running",
        run_id=run_id,
        ended_at=ended_at,
        ended_number=number if ended_at else 0,
    )


@given(
    st.lists(st.tuples(st.sampled_from(["", "r1", "r2", "r3", "gone"]), AGES), max_size=8),
    st.sets(st.sampled_from(["r1", "r2", "r3"])),
)
def test_a_run_goes_as_a_whole_or_stays_as_a_whole(made: list[tuple[str, int]], open_ids: set[str]) -> None:
    """Unless something of it is open, has not ended (0) or is young (3)."""
    jobs = [job(number, run_id, at) for number, (run_id, at) in enumerate(made, 1)]
    runs = [
        Run(run_id=name, tree=name, state="accepted", baseline="", head="", porcelain="", created_at=1)
        for name in ("r1", "r2", "r3")
    ]
    of_runs = {run.run_id: [each for each in jobs if each.run_id == run.run_id] for run in runs}
    ended = [each for each in jobs if 0 < each.ended_at < 3]
    chosen = choose(ended, runs, of_runs, open_ids, 3)
    assert {each.job_id for each in chosen.jobs} | {each.job_id for each in chosen.stay} == {
        each.job_id for each in ended
    }
    for run in runs:
        goes = run.run_id not in open_ids and all(0 < each.ended_at < 3 for each in of_runs[run.run_id])
        assert (run in chosen.runs) is goes
        assert all((each in chosen.jobs) is goes for each in of_runs[run.run_id] if each in ended)
    assert all(each in chosen.jobs for each in ended if each.run_id in ("", "gone"))
    assert all((each.why == "open") is (each.run_id in open_ids) for each in chosen.stay)


def asked(jobs: Jobs, action: Any, **more: Any) -> dict[str, Any]:
    return resolve(jobs, "local", Resolution(action=action, **more))


async def ended_jobs(here: Stage, jobs: Jobs, *requests: Any) -> list[Job]:
    """Ended, and their supervisors gone, which hold a job's lock for a moment after they wrote its end."""
    ended = await here.ended(jobs, *(spawn(jobs, request) for request in requests))
    async with asyncio.timeout(DEADLINE_S):
        for job in ended:
            while not is_free(here.places.job(job.job_id).lock):
                await asyncio.sleep(0.005)
    return ended


def is_free(lock: Path) -> bool:
    with held(lock) as is_ours:
        return is_ours


@pytest.mark.covers("004-events.2", "J-tools.10")
async def test_jobs_go_with_folders_rows_runs_and_snapshots_and_nothing_else_does(tmp_path: Path) -> None:
    """A run that is open stays with all of its jobs; young jobs stay; the user's files are not touched."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        read, write = await ended_jobs(here, jobs, reading("%say one"), writing("%patch new.txt 1"))
        assert plan(jobs, 3600).is_empty
        kept = plan(jobs, 0)
        assert [each.job_id for each in kept.jobs] == [read.job_id]
        assert [(each.job_id, each.why) for each in kept.stay] == [(write.job_id, "open")]
        assert kept.trees == ()
        assert asked(jobs, "accept")["accepted"]
        before = sorted(path.name for path in here.work.iterdir())
        garbage = plan(jobs, 0)
        assert {each.job_id for each in garbage.jobs} == {read.job_id, write.job_id}
        assert len(garbage.trees) == 1
        done = collect(jobs, garbage)
        assert (set(done.jobs), done.trees, done.problems) == ({read.job_id, write.job_id}, 1, ())
        assert done.freed_bytes > 1000
        assert list(here.places.jobs.iterdir()) == list(here.places.trees.iterdir()) == []
        assert (jobs.ledger.listed(), jobs.runs.all_runs()) == ([], [])
        with pytest.raises(JobUnknown):
            jobs.get(read.job_id)
        assert sorted(path.name for path in here.work.iterdir()) == before
        assert plan(jobs, 0).is_empty


@pytest.mark.covers("J-tools.12")
async def test_numbers_of_ends_go_on_so_that_no_cursor_hides_a_later_job(tmp_path: Path) -> None:
    """A wait that was told of job 1 is told of the next one, too."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        (first,) = await ended_jobs(here, jobs, reading("%say one"))
        collect(jobs, plan(jobs, 0))
        (second,) = await ended_jobs(here, jobs, reading("%say two"))
        assert (first.ended_number, second.ended_number) == (1, 2)


async def test_a_rolled_back_run_goes_with_its_rollbacks_and_another_of_the_tree_stays(
    tmp_path: Path,
) -> None:
    """What is still needed can still be rolled back and undone."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        await ended_jobs(here, jobs, writing("%patch one.txt 1"))
        assert asked(jobs, "rollback")["ending"] == "done"
        (later,) = await ended_jobs(here, jobs, writing("%patch two.txt 2"))
        garbage = plan(jobs, 0)
        assert (len(garbage.jobs), len(garbage.runs), garbage.trees) == (1, 1, ())
        rollbacks = here.places.tree(later.tree) / "rollbacks"
        assert len(list(rollbacks.glob("rollback-*"))) == 1
        collect(jobs, garbage)
        assert list(rollbacks.glob("rollback-*")) == []
        assert asked(jobs, "rollback")["ending"] == "done"
        assert not (here.work / "two.txt").exists()
        assert asked(jobs, "undo")["ending"] == "done"
        assert (here.work / "two.txt").exists()


async def test_a_run_whose_tree_is_gone_is_over(tmp_path: Path) -> None:
    """Nobody will ever accept it."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        (ended,) = await ended_jobs(here, jobs, writing("%patch one.txt 1"))
        here.work.rename(here.work.with_name("elsewhere"))
        try:
            garbage = plan(jobs, 0)
            assert [run.run_id for run in garbage.expired] == [ended.run_id]
            done = collect(jobs, garbage)
            assert (done.runs, done.problems) == ((ended.run_id,), ())
        finally:
            here.work.with_name("elsewhere").rename(here.work)


async def test_what_is_still_in_somebodys_hands_stays(tmp_path: Path) -> None:
    """A supervisor that has written the end and is not gone yet; a run that somebody rolls back."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        read, write = await ended_jobs(here, jobs, reading("%say one"), writing("%patch one.txt 1"))
        asked(jobs, "accept")
        garbage = plan(jobs, 0)
        with (
            held(here.places.job(read.job_id).lock) as one,
            held(here.places.tree(write.tree) / "rollback.lock") as other,
        ):
            assert one
            assert other
            done = collect(jobs, garbage)
        assert (done.jobs, done.runs, done.trees) == ((), (), 0)
        assert set(collect(jobs, plan(jobs, 0)).jobs) == {read.job_id, write.job_id}


async def test_a_killed_collection_is_finished_by_the_next_one(tmp_path: Path) -> None:
    """Folders without rows, rows without folders, a tree that was put aside; young leftovers stay."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        (read,) = await ended_jobs(here, jobs, reading("%say one"))
        files = here.places.job(read.job_id).folder
        files.rename(files.with_name("job-00000000000000aa"))
        aside = here.places.trees / f"{REMOVED}0123"
        aside.mkdir(parents=True)
        garbage = plan(jobs, 0)
        assert (len(garbage.jobs), garbage.leftovers, garbage.trees) == (1, (), (aside.name,))
        for path in (
            *files.with_name("job-00000000000000aa").iterdir(),
            files.with_name("job-00000000000000aa"),
        ):
            os.utime(path, (1, 1))
        garbage = plan(jobs, 0)
        assert garbage.leftovers == ("job-00000000000000aa",)
        done = collect(jobs, garbage)
        assert (done.jobs, done.problems) == ((read.job_id,), ())
        assert list(here.places.jobs.iterdir()) == list(here.places.trees.iterdir()) == []
