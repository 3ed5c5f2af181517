"""What is known of a job that still runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.core.tools import Caller
from laneway.jobs.tools import JobTools
from tests.jobs.stage import spawn, stage, writing

ANN = Caller(agent_id="", principal="local")


@pytest.mark.covers("004-tools.3", "J-tools.6")
async def test_a_result_is_partial_while_the_job_runs_and_whole_when_it_has_ended(tmp_path: Path) -> None:
    """Its last message so far, its patches so far, its tokens so far; no error, and nothing made up."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        tools = JobTools(lambda: jobs, LoopClock())

        async def result(job_id: str) -> dict[str, Any]:
            answer = await tools.handler("codex_result")(ANN, {"jobId": job_id})
            found: dict[str, Any] = json.loads(answer.text)
            return found

        go = here.state / "go"
        prompt = f"%usage 500\n%patch new.txt one\n%say Half.\n%run until test -e {go}; do sleep 0.02; done"
        job = spawn(jobs, writing(f"{prompt}\n%run echo x >> a.txt\n%say All of it."))
        await here.until(jobs, job, lambda each: "until test" in each.activity and each.tokens)
        partial = await result(job.job_id)
        assert (partial["isPartial"], partial["status"], partial["lastMessage"]) == (True, "running", "Half.")
        assert partial["modifiedFiles"] == [{"path": "new.txt", "certainty": "patch"}]
        assert partial["usage"]["totalTokens"] >= 500
        assert "error" not in partial
        go.touch()
        await here.ended(jobs, job)
        whole = await result(job.job_id)
        assert (whole["isPartial"], whole["status"], whole["lastMessage"]) == (
            False,
            "succeeded",
            "All of it.",
        )
        assert [(each["path"], each["certainty"], each["change"]) for each in whole["modifiedFiles"]] == [
            ("a.txt", "alone", "modified"),
            ("new.txt", "patch", "added"),
        ]
