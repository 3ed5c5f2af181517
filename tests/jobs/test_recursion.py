"""A Laneway that a real worker starts in a disguise offers no jobs: its ancestors tell what it is part of."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from laneway.codex.exec.command import toml_string
from laneway.jobs import tool_schemas
from tests.core.support import until
from tests.doors.mcp.tapped_claude import TAP
from tests.jobs.stage import DEADLINE_S, reading, spawn, stage
from tests.wire.support import linux_only


@pytest.mark.covers("004-recursion.1", "J-workers.4")
@linux_only
async def test_a_server_that_codex_starts_unrecognised_and_without_our_mark_offers_no_jobs(
    tmp_path: Path,
) -> None:
    """Codex gives MCP servers an environment of its own making, so that the mark of the job is not in it."""
    log, seen = tmp_path / "log", tmp_path / "environment"
    disguise = tmp_path / "helper.py"
    disguise.write_text(
        f"import os, sys\nopen({str(seen)!r}, 'w').write(repr(sorted(os.environ)))\n"
        f"os.execv(sys.executable, [sys.executable, {str(TAP)!r}, {str(log)!r}, sys.executable, '-P', '-m',"
        " 'laneway', 'mcp'])\n"
    )
    async with stage(tmp_path) as here:
        config = here.home / "config.toml"
        config.write_text(
            f"{config.read_text()}\n[mcp_servers.helper]\ncommand = {toml_string(sys.executable)}\n"
            f"args = [{toml_string(str(disguise))}]\n"
            f"env = {{ PYTHONPATH = {toml_string(here.environment['PYTHONPATH'])} }}\n"
        )
        jobs = here.jobs()
        go = here.state / "go"
        job = spawn(jobs, reading(f"%run until test -e {go}; do sleep 0.02; done\n%say Done."))
        await here.until(jobs, job, lambda each: "until test" in each.activity)
        await until(lambda: answered(log), DEADLINE_S)
        go.touch()
        await here.ended(jobs, job)
        assert "LANEWAY_JOB" not in seen.read_text()
        names = {tool["name"] for tool in answered(log)}
        assert "codex" in names
        assert names.isdisjoint(tool_schemas.NAMES)


@pytest.mark.covers("J-workers.4")
@linux_only
async def test_a_command_of_a_worker_that_has_dropped_our_mark_starts_no_job_either(tmp_path: Path) -> None:
    """Full access, an empty environment, a session of its own."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(max_sandbox="danger-full-access")
        told = tmp_path / "told"
        keep = f"PATH=/usr/bin:/bin HOME={tmp_path} PYTHONPATH={here.environment['PYTHONPATH']}"
        spawning = f"env -i {keep} setsid --wait {sys.executable} -P -m laneway jobs spawn x"
        job = spawn(jobs, reading(f"%run {spawning} > {told} 2>&1\n%say Done.", sandbox="danger-full-access"))
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "succeeded", here.log_of(job.job_id)
        assert "inside a worker of a background job" in told.read_text()


def answered(log: Path) -> list[dict[str, str]]:
    """The tools that the server has listed, once it has."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    for line in lines:
        if line.endswith("\n"):
            way, frame = json.loads(line)
            tools = json.loads(frame).get("result", {}).get("tools") if way == "<" else None
            if tools:
                return list(tools)
    return []
