"""Runs that close by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.stage import spawn, stage, writing


@pytest.mark.covers("J-a2.3")
async def test_a_run_without_conflicts_closes_after_a_time_unless_that_is_switched_off(
    tmp_path: Path,
) -> None:
    """When the next job of the tree starts; by the setting of whoever asked for that one."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(run_expiry_s=0)
        runs = []
        for wanted in (jobs, jobs, here.jobs(run_expiry_s=1e-6)):
            (ended,) = await here.ended(wanted, spawn(wanted, writing("%patch a.txt x")))
            runs.append(ended.run_id)
        assert runs[0] == runs[1] != runs[2]
        first, last = (jobs.runs.get(run_id) for run_id in runs[1:])
        assert first is not None
        assert last is not None
        assert (first.state, last.state) == ("expired", "open")
