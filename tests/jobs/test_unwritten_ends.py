"""Jobs that ended while their end could not be written, because the disk was full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.jobs.event_log import EventWriter
from laneway.jobs.model import Job, JobFailure
from laneway.jobs.partial import result_of
from laneway.jobs.runs import TreeRuns
from laneway.jobs.service import Jobs
from laneway.jobs.slots import held
from tests.jobs.stage import Stage, stage, writing

FULL = JobFailure("disk", "The disk is full.")


def ended_on_a_full_disk(jobs: Jobs, runs: TreeRuns, here: Stage) -> Job:
    """It has added a file; neither the border of its end, nor its result, nor `final` is there."""
    job = jobs.spawn(writing("%patch made.txt 1"))
    run = runs.begin(job, require_clean=False)
    here.write(**{"made.txt": "1\n"})
    change: dict[str, Any] = {"path": str(here.work / "made.txt"), "kind": "add"}
    with EventWriter(jobs.places.job(job.job_id).events) as events:
        events.append("tool_call", {"tool": "patch", "id": "item_1", "changes": [change]})
        events.append(
            "tool_result", {"tool": "patch", "id": "item_1", "changes": [change], "status": "completed"}
        )
    assert jobs.ledger.end(job.job_id, "failed", FULL, is_inconsistent=True)
    assert jobs.get(job.job_id).run_id == run.run_id
    return jobs.get(job.job_id)


@pytest.mark.covers("J-tools.9")
async def test_whoever_reads_the_events_of_an_ended_job_sees_its_end_once(tmp_path: Path) -> None:
    """As soon as it can be written; and not while somebody else may be writing it."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = ended_on_a_full_disk(jobs, TreeRuns(here.places, jobs.ledger, str(here.work)), here)
        with held(here.places.job(job.job_id).lock):
            page = jobs.events(job)
            assert not page.has_final
        assert jobs.events(job, page.next_cursor).events[0]["content"] == {
            "status": "failed",
            "kind": "disk",
            "error": "The disk is full.",
            "isInconsistent": True,
        }
        assert [event["type"] for event in here.events(jobs, job)] == ["tool_call", "tool_result", "final"]


@pytest.mark.covers("J-a2.13")
async def test_a_job_without_a_last_border_is_at_work_no_more_when_the_next_one_begins(
    tmp_path: Path,
) -> None:
    """Else every later job of the run would overlap with it."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        runs = TreeRuns(here.places, jobs.ledger, str(here.work))
        first = ended_on_a_full_disk(jobs, runs, here)
        second = jobs.spawn(writing("%say hi"))
        run = runs.begin(second, require_clean=False)
        assert jobs.runs.borders(run.run_id)[-1].active == (second.job_id,)
        result, _ = result_of(jobs, first)
        assert [(file.path, file.certainty, file.change) for file in result.modified_files] == [
            ("made.txt", "patch", "added")
        ]
