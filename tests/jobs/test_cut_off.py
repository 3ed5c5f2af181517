"""What a killed process has left half written is finished before anybody works on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from laneway.jobs.rollback.wanted import wanted
from laneway.jobs.runs import TreeRuns
from laneway.jobs.service import Jobs
from tests.jobs.child import Order
from tests.jobs.stage import Stage, spawn, stage, writing
from tests.jobs.test_resolving import asked

CHILD = Path(__file__).parent / "child.py"
STEPS = 9
"""After which the rollback is killed: its journal is on disk, and some of the files are given back."""


def cut_off_rollback(here: Stage, jobs: Jobs) -> None:
    """Half of a rollback of the open run, by a process that is killed."""
    run = jobs.runs.open_run(str(here.work))
    assert run is not None
    runs = TreeRuns(here.places, jobs.ledger, run.tree)
    judged = runs.judge(run)
    ids = tuple(job.job_id for job in judged.jobs)
    returns = list(wanted(judged.credits.claims, ids).returns)
    folders = dict(runs.shadow.folders(runs.baseline(run)))
    order = Order(STEPS, str(runs.shadow.folder), returns, folders)
    words = [sys.executable, str(CHILD), "rollback", str(runs.rollbacks.folder), run.tree]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(words, env=environment, input=msgspec.json.encode(order), check=False)
    assert ran.returncode == -signal.SIGKILL
    (record,) = runs.rollbacks.records()
    assert record.outcome is None


@pytest.mark.covers("J-a2.17")
@pytest.mark.parametrize("who", ["job", "person"])
async def test_a_rollback_that_was_cut_off_is_finished_at_the_next_look(tmp_path: Path, who: str) -> None:
    """A job that begins finds the tree as it shall be; and so does somebody who only looks."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        script = "%run for n in 1 2 3 4 5 6; do echo x > new$n; done; echo x >> a.txt"
        await here.ended(jobs, spawn(jobs, writing(script)))
        cut_off_rollback(here, jobs)
        assert here.git("status", "--porcelain") != ""
        if who == "job":
            job = spawn(jobs, writing("%run ls > seen\n%say Done."))
            (ended,) = await here.ended(jobs, job)
            assert (here.work / "seen").read_text().split() == ["a.txt", "b.txt", "seen"]
            assert [file.path for file in here.result(jobs, ended).modified_files] == ["seen"]
        else:
            asked(jobs, "show")
            assert here.git("status", "--porcelain") == ""
