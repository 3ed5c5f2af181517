"""Jobs on a Ray cluster of two nodes, with the real Ray: `make test-ray`."""

from __future__ import annotations

import asyncio
import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from laneway.base.errors import JobUnknown, NodeUnreachable, UsageError
from laneway.jobs.places import new_job_id
from laneway.jobs.processes import marked as marked_by_job
from tests.jobs.ray.cluster import marked
from tests.jobs.ray.stage import LOOK_S, RayStage, ray_stage
from tests.wire.support import linux_only

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: make test-ray"),
    pytest.mark.timeout(300),
    linux_only,
]


async def test_a_job_runs_on_the_node_that_it_is_for(tmp_path: Path) -> None:
    """With that node's home, checkout and environment; the cluster's secret and ours stay where they are."""
    async with ray_stage(tmp_path) as here:
        for name in ("a", "b"):
            job_id = await here.spawn(name, "%run cat whose.txt; env\n%say Done.")
            await here.until(name, job_id, "succeeded")
            events = str((await here.call(name, "events", jobId=job_id))["events"])
            assert f"{name}'s" in events
            assert f"HOME={here.cluster.node(name).home}" in events
            assert "RAY_" not in events
            assert (await here.call(name, "result", jobId=job_id))["lastMessage"] == "Done."


async def test_what_a_node_cannot_do_is_its_own_sentence(tmp_path: Path) -> None:
    async with ray_stage(tmp_path) as here:
        with pytest.raises(UsageError, match=r"no machine c: (a, b|b, a)\."):
            await here.nodes.node("c")
        with pytest.raises(JobUnknown):
            await here.call("a", "result", jobId=new_job_id())
        request = {"prompt": "x"}
        with pytest.raises(UsageError, match="^b: it has no repository other"):
            await here.call("b", "spawn", jobId=new_job_id(), repository="other", path="", request=request)


async def test_a_node_that_is_killed_is_out_of_reach_and_its_jobs_go_on(tmp_path: Path) -> None:
    """The other node's, too. When it is back, its jobs are as they are, and none was run twice."""
    async with ray_stage(tmp_path) as here:
        on_a = await here.spawn("a", here.waiting("a"))
        on_b = await here.spawn("b", here.waiting("b"))
        for name, job_id in (("a", on_a), ("b", on_b)):
            await here.until(name, job_id, "running")
        here.cluster.node("b").kill()
        await out_of_reach(here, "b", on_b)
        assert list(marked_by_job(on_b))
        await here.call("a", "hello")
        here.go.touch()
        await here.until("a", on_a, "succeeded")
        await here.start("b")
        await here.until("b", on_b, "succeeded")
        assert (await here.call("b", "result", jobId=on_b))["lastMessage"] == "b"
        assert first_turns(here) == 2


async def test_a_head_that_is_killed_ends_no_job(tmp_path: Path) -> None:
    """All nodes go with it, and come back when it does; the same jobs are there then, and run on."""
    async with ray_stage(tmp_path) as here:
        jobs = {name: await here.spawn(name, here.waiting(name)) for name in ("a", "b")}
        for name, job_id in jobs.items():
            await here.until(name, job_id, "running")
        here.cluster.node("a").kill()
        for name, job_id in jobs.items():
            await out_of_reach(here, name, job_id)
        # Ray ends the other nodes of a dead head by itself; only then it lets a new one start beside them.
        process = here.cluster.node("b").process
        assert process is not None
        await asyncio.to_thread(process.wait)
        assert all(list(marked_by_job(job_id)) for job_id in jobs.values())
        await here.start("a", "b")
        for name, job_id in jobs.items():
            await here.until(name, job_id, "running")
        here.go.touch()
        for name, job_id in jobs.items():
            await here.until(name, job_id, "succeeded")
            assert (await here.call(name, "result", jobId=job_id))["lastMessage"] == name
        assert first_turns(here) == 2


async def test_an_actor_or_a_driver_that_is_killed_is_started_anew(tmp_path: Path) -> None:
    """Ray kills the children of an actor that ends; a job's supervisor is none of them."""
    async with ray_stage(tmp_path) as here:
        job_id = await here.spawn("b", here.waiting("b"))
        await here.until("b", job_id, "running")
        (actor,) = [pid for pid in marked(here.cluster.mark) if name_of(pid) == b"ray::NodeActor"]
        os.kill(actor, signal.SIGKILL)
        await here.until("b", job_id, "running")
        driver = here.nodes.driver_pid
        assert driver is not None
        os.kill(driver, signal.SIGKILL)
        await here.until("b", job_id, "running")
        assert here.nodes.driver_pid not in (None, driver)
        here.go.touch()
        await here.until("b", job_id, "succeeded")


async def out_of_reach(here: RayStage, name: str, job_id: str) -> None:
    """Ask until the node is out of reach; until then it may only say what is so."""
    while True:
        try:
            answer = await here.call(name, "watch", jobs={job_id: "running"})
        except NodeUnreachable:
            return
        assert [job["status"] for job in answer["jobs"]] == ["running"]
        await asyncio.sleep(LOOK_S)


def first_turns(here: RayStage) -> int:
    """How many threads the model has seen begin: one for each job that was started."""
    return sum("function_call_output" not in str(request["input"]) for request in here.near.requests)


def name_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().strip(b"\0 ")
    except OSError:
        return b""
