"""Jobs by what people type, and what a shell offers them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import laneway as package
from laneway.base.errors import UsageError
from laneway.cli.jobs.names import find_ids, find_job, find_run
from laneway.codex import locate
from laneway.jobs.model import Job, JobLimits
from laneway.jobs.places import JobsLayout
from laneway.jobs.requests import JobDefaults
from laneway.jobs.service import Jobs
from tests.cli.test_completion import complete

IDS = ("job-aaaaaa0000000001", "job-aaaaaa0000000002", "job-bbbbbb0000000003")


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    """Three that were never started; the last one has ended."""
    state = tmp_path / ".local" / "state" / "laneway"
    places = JobsLayout(state / "jobs", state / "laneway.db")
    defaults = JobDefaults(
        cwd=tmp_path, codex=locate.find().path, codex_home=str(tmp_path), work_near=places.jobs
    )
    made = Jobs(places, defaults, JobLimits())
    for job_id in IDS:
        job = Job(job_id=job_id, number=0, owner="local", mode="read", status="queued", title="Do\x1b[31m it")
        made.ledger.add(job)
    made.ledger.end(IDS[2], "succeeded")
    made.runs.begin("/tree", "", "", "")
    return made


def test_a_job_is_found_by_any_unambiguous_part_of_its_id(jobs: Jobs) -> None:
    """From the beginning or the end of it, six characters or more."""
    for who in (IDS[0], "aaaaaa0000000001", "000001", "job-aaaaaa0000000001"):
        assert find_job(jobs, who).job_id == IDS[0]
    assert find_job(jobs, "job-bb").job_id == IDS[2]
    assert find_ids(jobs, ["000003", "000001", "bbbbbb"]) == [IDS[2], IDS[0]]


@pytest.mark.parametrize("who", ["job-", "00001", "nobody", "aa\x1b[31m"])
def test_what_is_no_job_is_said_with_the_way_to_find_one(jobs: Jobs, who: str) -> None:
    """Too short is too little to go by."""
    with pytest.raises(UsageError) as caught:
        find_job(jobs, who)
    assert str(caught.value).startswith("There is no job ")
    assert str(caught.value).isprintable()
    assert ("At least 6 characters" in str(caught.value)) == (who == "00001")


@pytest.mark.parametrize("who", ["", "  "])
def test_an_empty_name_is_called_empty(jobs: Jobs, who: str) -> None:
    """As of a shell variable that is not set: no sentence with a gap in it."""
    for find in (find_job, find_run):
        with pytest.raises(UsageError, match=r"^The name is empty: give a name, an id"):
            find(jobs, who)


def test_an_ambiguous_part_is_refused_with_the_candidates(jobs: Jobs) -> None:
    with pytest.raises(UsageError) as caught:
        find_job(jobs, "aaaaaa")
    assert str(caught.value).splitlines() == [
        "aaaaaa can mean 2 jobs. Name one of them by its id:",
        f"  {IDS[0]}  Do\\x1b[31m it",
        f"  {IDS[1]}  Do\\x1b[31m it",
    ]


def test_a_shell_offers_the_jobs_that_a_verb_is_for(jobs: Jobs, tmp_path: Path) -> None:
    """Unfinished ones to wait for and to cancel, all to look at; open runs; nothing without any state."""
    env = environment(tmp_path)
    assert complete(tmp_path, "jobs", "result", "job-", env=env) == [IDS[2], IDS[1], IDS[0]]
    assert complete(tmp_path, "jobs", "cancel", "job-", env=env) == [IDS[1], IDS[0]]
    assert complete(tmp_path, "jobs", "resolve", "show", "--job", "job-b", env=env) == [IDS[2]]
    (run_id,) = complete(tmp_path, "jobs", "resolve", "accept", "run-", env=env)
    assert jobs.runs.get(run_id) is not None
    assert complete(tmp_path, "jobs", "result", "job-", env={**env, "HOME": "/nowhere"}) == []


def environment(top: Path) -> dict[str, str]:
    """A shell that has `laneway`."""
    executable = top / "bin" / "laneway"
    executable.parent.mkdir()
    executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m laneway "$@"\n')
    executable.chmod(0o755)
    return {
        "HOME": str(top),
        "PATH": f"{executable.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(package.__file__).parent.parent),
    }
