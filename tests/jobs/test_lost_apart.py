"""A job that works apart and whose supervisor and guardian are killed: nothing is merged, nothing is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from laneway.jobs.model import Isolation
from tests.jobs.killing import all_ended, kill, processes_of
from tests.jobs.stage import spawn, stage, writing
from tests.wire.support import linux_only


@pytest.mark.covers("J-supervision.2", "J-a2.22")
@pytest.mark.parametrize("isolation", ["overlay", "worktree"])
@linux_only
async def test_what_a_lost_job_has_done_apart_is_not_merged_and_can_be_looked_at(
    tmp_path: Path, isolation: Isolation
) -> None:
    """Its result says where; the tree is as it was."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = spawn(jobs, writing("%patch new.txt one\n%run sleep 1000", isolation=isolation))
        await here.until(jobs, job, lambda each: "sleep" in each.activity)
        pids = processes_of(job.job_id)
        for name in ("supervisor", "guardian"):
            assert kill(pids[name])
        (ended,) = await all_ended(here, jobs, [job.job_id])
        assert (ended.status, ended.is_inconsistent) == ("lost", True)
        assert here.git("status", "--porcelain") == ""
        result = here.result(jobs, ended)
        assert result.modified_files == ()
        (warning,) = result.warnings
        found = re.fullmatch(r"It was not merged: what it changed lies in (.+)\.", warning)
        assert found is not None, warning
        assert (Path(found[1]) / "new.txt").read_text().strip() == "one"
