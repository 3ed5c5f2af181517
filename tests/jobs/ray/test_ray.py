"""Jobs on a Ray cluster of two nodes, with the real Ray: `make test-ray`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from laneway.base.errors import NodeUnreachable, UsageError
from laneway.jobs.processes import marked as marked_by_job
from tests.jobs.ray.cluster import marked
from tests.jobs.ray.stage import RayStage, ray_stage
from tests.wire.support import linux_only

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: make test-ray"),
    pytest.mark.timeout(400),
    linux_only,
]
ORPHANS = "RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper"


@pytest.mark.covers("J-nodes.4", "J-nodes.7")
async def test_a_job_runs_on_the_machine_that_it_is_for(tmp_path: Path) -> None:
    """With that machine's home and environment; no secret of the cluster or of the spawner."""
    async with ray_stage(tmp_path) as here:
        for name in ("a", "b"):
            await here.start(name)
        jobs = {name: await here.spawn(name, "%run cat whose.txt; env\n%say Done.") for name in ("a", "b")}
        assert set((await here.ended(*jobs.values())).values()) == {"succeeded"}
        for name, job_id in jobs.items():
            assert (await here.ask("result", jobId=job_id))["lastMessage"] == "Done."
            events = await here.events(job_id)
            assert [event["type"] for event in events].count("final") == 1
            (output,) = [str(event["content"]) for event in events if event["type"] == "tool_result"]
            assert f"{name}'s" in output
            assert f"HOME={here.cluster.node(name).home}" in output
            assert "RAY_" not in output
            assert "SPAWNERS" not in output
        written = await here.spawn("b", "%patch new.txt one", sandbox="workspace-write")
        assert await here.ended(written) == {written: "succeeded"}
        assert (here.cluster.node("b").home / "site" / "new.txt").exists()
        assert not (here.cluster.node("a").home / "site" / "new.txt").exists()
        stopped = await here.spawn("a", here.waiting("Never."))
        await here.until_running(stopped)
        await here.ask("cancel", jobId=stopped)
        assert await here.ended(stopped) == {stopped: "cancelled"}
        assert "ray" not in sys.modules  # it is in the driver and the actors only


async def test_the_settings_say_that_jobs_run_on_the_cluster(tmp_path: Path) -> None:
    """By commands: each joins the cluster by itself, and the last one shows what the job produced."""
    async with ray_stage(tmp_path) as here:
        await here.start("a")
        home = tmp_path / "near-home"
        (home / ".config" / "laneway").mkdir(parents=True)
        for key, value in (
            ("jobs.executor", "ray"),
            ("jobs.address", here.cluster.address),
            ("jobs.repositories.site", str(here.site)),
        ):
            await laneway(here, home, "config", "set", key, value)
        words = ("jobs", "spawn", "--node", "a", "--cwd", str(here.site), "%run cat whose.txt\n%say Done.")
        job_id = (await laneway(here, home, *words)).strip()
        await laneway(here, home, "jobs", "wait", job_id, "--timeout", "2m")
        assert await laneway(here, home, "jobs", "result", job_id, "--message") == "Done.\n"
        assert "a's" in await laneway(here, home, "jobs", "events", job_id)


@pytest.mark.covers("J-nodes.3")
async def test_a_job_for_any_machine_goes_where_there_is_room(tmp_path: Path) -> None:
    """Machines have as many places as they say, and no more than Ray grants them."""
    async with ray_stage(tmp_path, k_read=1) as here:
        await here.start("a", {"repo:site": 1, "laneway:read": 1})
        await here.start("b", {"repo:site": 1, "laneway:read": 1, "laneway:write": 1})
        first, second, third = [await here.spawn("any", here.waiting(word)) for word in "123"]
        await here.until_running(first, second)
        listed = {each["jobId"]: each for each in (await here.ask("list"))["jobs"]}
        assert {listed[first]["node"], listed[second]["node"]} == {"a", "b"}
        assert listed[third]["node"] in ("a", "b")
        status = await here.ask("status", jobId=third)
        assert (status["status"], status["position"]) == ("queued", 1)
        writing = await here.spawn("any", "%patch new.txt one", sandbox="workspace-write")
        assert (await here.ended(writing)) == {writing: "succeeded"}
        assert (here.cluster.node("b").home / "site" / "new.txt").exists()
        here.go.touch()
        assert set((await here.ended(first, second, third)).values()) == {"succeeded"}


@pytest.mark.covers("J-nodes.5", "J-nodes.7")
async def test_a_machine_that_is_killed_is_unreachable_and_its_jobs_go_on(tmp_path: Path) -> None:
    """Those of the other one, too. When it is back, its jobs are as they are, and none was run twice."""
    async with ray_stage(tmp_path) as here:
        for name in ("a", "b"):
            await here.start(name)
        on_a, on_b = [await here.spawn(name, here.waiting(name)) for name in ("a", "b")]
        await here.until_running(on_a, on_b)
        here.cluster.node("b").kill()
        await here.until_unreachable(on_b)
        assert list(marked_by_job(on_b))
        later = await here.spawn("b", "%say Later.")
        while_away = await here.spawn("a", "%say While b is away.")
        assert await here.ended(while_away) == {while_away: "succeeded"}
        here.go.touch()
        assert await here.ended(on_a) == {on_a: "succeeded"}
        await here.start("b")
        assert await here.ended(on_b, later) == {on_b: "succeeded", later: "succeeded"}
        assert (await here.ask("result", jobId=on_b))["lastMessage"] == "b"
        assert here.threads() == 4


@pytest.mark.covers("J-nodes.7")
async def test_a_head_that_is_killed_ends_no_job(tmp_path: Path) -> None:
    """All machines go and come back with it. The jobs were there all the time, and are ours again."""
    async with ray_stage(tmp_path) as here:
        for name in ("a", "b"):
            await here.start(name)
        jobs = {name: await here.spawn(name, here.waiting(name)) for name in ("a", "b")}
        await here.until_running(*jobs.values())
        here.cluster.node("a").kill()
        for job_id in jobs.values():
            await here.until_unreachable(job_id)
        # Ray ends the other nodes of a dead head; only then does it let a new one start beside them.
        process = here.cluster.node("b").process
        assert process is not None
        await asyncio.to_thread(process.wait)
        assert all(list(marked_by_job(job_id)) for job_id in jobs.values())
        await here.open_near()  # whoever comes later knows as much
        waiting = await here.ask("wait_all", jobIds=list(jobs.values()), timeoutMs=1000)
        assert waiting["ended"] == []
        for name in ("a", "b"):
            await here.start(name)
        await here.until_running(*jobs.values())
        here.go.touch()
        assert set((await here.ended(*jobs.values())).values()) == {"succeeded"}
        for name, job_id in jobs.items():
            assert (await here.ask("result", jobId=job_id))["lastMessage"] == name
        assert here.threads() == 2


@pytest.mark.covers("J-nodes.7")
async def test_an_actor_or_a_driver_that_is_killed_is_started_anew(tmp_path: Path) -> None:
    """Ray kills the children of an actor that ends; a job's supervisor is none of them."""
    async with ray_stage(tmp_path) as here:
        for name in ("a", "b"):
            await here.start(name)
        job_id = await here.spawn("b", here.waiting("Done."))
        await here.until_running(job_id)
        (actor,) = actors(here)
        os.kill(actor, signal.SIGKILL)
        await here.until(job_id, lambda status: status["status"] == "running" and actors(here) != [actor])
        driver = here.nodes.driver_pid
        assert driver is not None
        os.kill(driver, signal.SIGKILL)
        await here.until(job_id, lambda status: here.nodes.driver_pid not in (None, driver))
        here.go.touch()
        assert await here.ended(job_id) == {job_id: "succeeded"}
        assert here.threads() == 1


async def test_what_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    async with ray_stage(tmp_path) as here:
        with pytest.raises(
            NodeUnreachable, match=r"out of reach: no Ray cluster answers there \(connection ref"
        ):
            await here.nodes.machines()
        await here.start("a")
        await here.start("b", extra={ORPHANS: "true"})
        with pytest.raises(UsageError, match=r"^The Ray cluster has no machine c: it has a, b\.$"):
            await here.spawn("c", "x")
        with pytest.raises(UsageError, match=r"in no repository of jobs\.repositories"):
            await here.spawn("a", "x", cwd=str(tmp_path))
        with pytest.raises(UsageError, match=r"^b: Ray would kill running jobs"):
            await here.spawn("b", "x")
        stranger = {**here.environment, "RAY_AUTH_TOKEN": "wrong" * 8}
        outside = here.nodes_of(here.tools.jobs, here.cluster.address, stranger)
        with pytest.raises(NodeUnreachable, match=r"lets nobody join; is the secret right\?$"):
            await outside.machines()
        await outside.close()


async def laneway(here: RayStage, home: Path, *words: str) -> str:
    """What a command on the near side prints; it succeeds."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "laneway", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=here.site,
        env={**here.environment, "HOME": str(home)},
    )
    printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return printed.decode()


def actors(here: RayStage) -> list[int]:
    return [pid for pid in marked(here.cluster.mark) if name_of(pid) == b"ray::NodeActor"]


def name_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().strip(b"\0 ")
    except OSError:
        return b""
