"""Background jobs through a real MCP server."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.jobs import tool_schemas
from tests.core.support import LOOK_S
from tests.doors.mcp.support import Client, Stage, stage

TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@asynccontextmanager
async def place(tmp_path: Path) -> AsyncIterator[Stage]:
    """A folder in git, and nothing left running at the end."""
    async with stage(tmp_path) as here:
        here.environment["XDG_STATE_HOME"] = str(tmp_path / "xdg")
        await asyncio.to_thread(subprocess.run, ["git", "init", "--quiet"], cwd=here.work, check=True)
        try:
            yield here
        finally:
            await ended(here)


async def ended(here: Stage) -> None:
    """End what a test has left running."""
    async with here.server("mcp") as client:
        left = await client.content("codex_list", status="unfinished")
        for job in left["jobs"]:
            await client.content("codex_cancel", jobId=job["jobId"], force=True)
        if left["jobs"]:
            await client.content("codex_wait_all")


async def spawned(client: Client, prompt: str, **more: Any) -> str:
    job_id: str = (await client.content("codex_spawn", prompt=prompt, **more))["jobId"]
    return job_id


@pytest.mark.covers(
    "004-tools.1", "004-tools.2", "004-tools.6", "004-boss.s", "004-events.s", "J-tools.9", "J-tools.12"
)
async def test_a_boss_spawns_waits_collects_and_is_told_of_each_job_once(tmp_path: Path) -> None:
    """The six tools of the specification, and the others, on one server."""
    async with place(tmp_path) as here, here.server("mcp") as client:
        one = await spawned(client, "%say one", tags=["a"])
        two = await spawned(client, "%run ls\n%say two")
        first = await client.content("codex_wait_any", jobIds=[one, two])
        assert len(first["ended"]) in (1, 2)
        rest = await client.content("codex_wait_all", jobIds=[one, two], cursor=first["nextCursor"])
        told = [job["jobId"] for job in first["ended"] + rest["ended"]]
        assert sorted(told) == sorted([one, two])
        again = await client.content("codex_wait_any", jobIds=[one, two], cursor=rest["nextCursor"])
        assert (again["ended"], again["pending"]) == ([], [])
        result = await client.content("codex_result", jobId=one)
        assert (result["status"], result["lastMessage"]) == ("succeeded", "one")
        events = await client.content("codex_events", jobId=two, types=["tool_call", "final"])
        assert [event["type"] for event in events["events"]] == ["tool_call", "final"]
        assert events["done"]
        status = await client.content("codex_status", jobId=two)
        assert status["status"] == "succeeded"
        assert len(msgspec.json.encode(status)) < 300
        listed = await client.content("codex_list", tag="a")
        assert [job["jobId"] for job in listed["jobs"]] == [one]
        follow_up = await client.content("codex_send", jobId=one, prompt="%say three")
        await client.content("codex_wait_all", jobIds=[follow_up["jobId"]])
        assert (await client.content("codex_result", jobId=follow_up["jobId"]))["lastMessage"] == "three"


@pytest.mark.covers("J-tools.20")
async def test_bad_input_is_a_sentence_in_the_result(tmp_path: Path) -> None:
    async with place(tmp_path) as here, here.server("mcp") as client:
        job_id = await spawned(client, "%say x")
        await client.content("codex_wait_all")
        for name, arguments in (
            ("codex_spawn", {"prompt": ""}),
            ("codex_spawn", {"prompt": "x", "tags": [1]}),
            ("codex_status", {"jobId": "job-1"}),
            ("codex_events", {"jobId": "../../x"}),
            ("codex_wait_any", {"jobIds": ["nope"]}),
            ("codex_wait_any", {"cursor": "x"}),
            ("codex_list", {"status": "odd"}),
            ("codex_list", {"cursor": "n9999999999999999999"}),
            ("codex_resolve", {"action": "accept"}),
            ("codex_send", {"jobId": "job-0000000000000000", "prompt": "x"}),
            ("codex_events", {"jobId": job_id, "types": ["nope"]}),
            ("codex_events", {"jobId": job_id, "types": [1]}),
        ):
            result = (await client.call(name, **arguments))["result"]
            assert result["isError"], (name, result)
            assert result["content"][0]["text"].endswith((".", "one.")), result
        endless = await client.content("codex_wait_any", timeoutMs=10**400)  # cut to the longest
        assert (endless["ended"], endless["timedOut"]) == ([], False)
        assert (await client.error("codex_spawn", sandbox="read-only"))[
            "message"
        ] == "codex_spawn needs prompt."


@pytest.mark.covers("J-supervision.1")
async def test_jobs_outlive_their_server_and_another_one_finds_them(tmp_path: Path) -> None:
    """Killed, not closed."""
    async with place(tmp_path) as here:
        async with here.server("mcp") as client:
            go = tmp_path / "go"
            job_id = await spawned(client, f"%run until test -e {go}; do sleep 0.02; done\n%say went on")
            while (await client.content("codex_status", jobId=job_id))["status"] in ("queued", "starting"):
                await asyncio.sleep(LOOK_S)
            client.process.kill()
            await client.process.wait()
        go.touch()
        async with here.server("mcp") as client:
            await client.content("codex_wait_all", jobIds=[job_id])
            assert (await client.content("codex_result", jobId=job_id))["lastMessage"] == "went on"


@pytest.mark.covers("J-tools.14")
async def test_a_wait_is_a_task_for_clients_that_take_tasks_and_survives_the_server(tmp_path: Path) -> None:
    """In the stateless era; the jobs do not care whether the wait is cancelled."""
    async with place(tmp_path) as here:
        go = tmp_path / "go"
        async with here.server("mcp") as client:
            job_id = await spawned(client, f"%run until test -e {go}; do sleep 0.02; done\n%say over")
            as_long_as_it_takes = {"jobIds": [job_id], "timeoutMs": 10**400}
            call = {"name": "codex_wait_any", "arguments": as_long_as_it_takes}
            begun = (await client.stateless("tools/call", call, TASKS))["result"]
            assert (begun["resultType"], begun["status"]) == ("task", "working")
            other = (await client.stateless("tools/call", call, TASKS))["result"]
            await client.stateless("tasks/cancel", {"taskId": other["taskId"]}, TASKS)
        async with here.server("mcp") as client:
            task = {"taskId": begun["taskId"]}
            state = (await client.stateless("tasks/get", task, TASKS))["result"]
            assert state["status"] == "working"
            go.touch()
            while state["status"] == "working":
                await asyncio.sleep(LOOK_S)
                state = (await client.stateless("tasks/get", task, TASKS))["result"]
            assert state["status"] == "completed"
            ended = state["result"]["structuredContent"]["ended"]
            assert [(job["jobId"], job["status"]) for job in ended] == [(job_id, "succeeded")]
            cancelled = await client.stateless("tasks/get", {"taskId": other["taskId"]}, TASKS)
            assert cancelled["result"]["status"] == "cancelled"


@pytest.mark.covers("J-tools.13", "J-tools.14")
async def test_a_call_that_asks_for_a_task_finds_its_wait_again_on_the_next_server(tmp_path: Path) -> None:
    """In the dialect of 2025-11-25, after the first server was killed: `tasks/result` waits for the jobs."""
    async with place(tmp_path) as here:
        go = tmp_path / "go"
        async with here.server("mcp", greet=False) as client:
            await client.greet({}, "2025-11-25")
            job_id = await spawned(client, f"%run until test -e {go}; do sleep 0.02; done\n%say over")
            call = {"name": "codex_wait_all", "arguments": {"jobIds": [job_id]}, "task": {}}
            kept, dropped = [
                (await client.ask("tools/call", call))["result"]["task"]["taskId"] for _ in range(2)
            ]
            ended = await client.ask("tasks/cancel", {"taskId": dropped})
            assert ended["result"]["status"] == "cancelled"
            client.process.kill()
            await client.process.wait()
        async with here.server("mcp", greet=False) as client:
            await client.greet({}, "2025-11-25")
            waiting = client.request("tasks/result", {"taskId": kept})
            listed = (await client.ask("tasks/list"))["result"]["tasks"]
            assert {each["taskId"]: each["status"] for each in listed} == {
                kept: "working",
                dropped: "cancelled",
            }
            assert not waiting.done()
            go.touch()
            told = (await waiting)["result"]["structuredContent"]
            assert [(job["jobId"], job["status"]) for job in told["ended"]] == [(job_id, "succeeded")]
            state = await client.ask("tasks/get", {"taskId": kept})
            assert state["result"]["status"] == "completed"


@pytest.mark.covers("J-tools.17")
async def test_codex_mcp_keeps_its_status_and_has_that_of_jobs_too(tmp_path: Path) -> None:
    """Without `jobId` it is the server's health, as it always was."""
    program = ("-c", "from laneway.cli.older_programs import codex_mcp; raise SystemExit(codex_mcp())")
    async with place(tmp_path) as here, here.server("serve", program=program) as client:
        listed = (await client.ask("tools/list"))["result"]["tools"]
        names = [tool["name"] for tool in listed]
        assert set(tool_schemas.NAMES) < set(names)
        assert len(names) == len(set(names))
        assert "identities" in await client.content("codex_status")
        job_id = await spawned(client, "%say x")
        assert (await client.content("codex_status", jobId=job_id))["jobId"] == job_id
        await client.content("codex_wait_all", jobIds=[job_id])


@pytest.mark.covers("004-recursion.1", "J-workers.4")
async def test_a_server_below_a_worker_offers_no_jobs(tmp_path: Path) -> None:
    below = {"LANEWAY_JOB": "job-0000000000000000"}
    async with place(tmp_path) as here, here.server("mcp", env=below) as client:
        listed = await client.ask("tools/list")
        names = {tool["name"] for tool in listed["result"]["tools"]}
        assert names.isdisjoint(tool_schemas.NAMES)
        answer = await client.call("codex_spawn", prompt="x")
        assert "error" in answer
