"""Measures jobs on a Ray cluster of two nodes on this machine: `make measure-ray`.

Prints what docs/scale.md has in its table. Starts a cluster of its own, with the scripted model, and ends it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.jobs.ray.cluster import is_of_ray, marked
from tests.jobs.ray.stage import RayStage, ray_stage
from tests.jobs.ray.test_ray import name_of

CALLS = 300
MEGABYTE = 1_000_000


async def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with ray_stage(Path(folder)) as here:
            await _start(here)
            await _calls(here)
            _memory(here)
    return 0


async def _start(here: RayStage) -> None:
    began = time.perf_counter()
    await here.start("a")
    head = time.perf_counter()
    await here.start("b")
    _show("head, to its first answer (with our driver)", head - began)
    _show("another node, until the head has it", time.perf_counter() - head)
    await here.open_near()
    began = time.perf_counter()
    await here.nodes.machines()
    _show("driver, to its first answer", time.perf_counter() - began)
    for name in ("a", "b"):
        began = time.perf_counter()
        await here.nodes.call(name, "hello", {}, None)
        _show(f"first call to {name}: actor and laneway jobs node", time.perf_counter() - began)
    await here.open_near()
    await here.nodes.machines()
    began = time.perf_counter()
    await here.nodes.call("b", "hello", {}, None)
    _show("first call of another process to an actor that is there", time.perf_counter() - began)


async def _calls(here: RayStage) -> None:
    await _repeat("a call (watch of nothing)", lambda: here.nodes.call("b", "watch", {"jobs": {}}, None))
    job_id = await here.spawn("b", "%say Done.")
    await here.ended(job_id)
    await _repeat("a page of events", lambda: here.nodes.call("b", "events", {"jobId": job_id}, None))
    held = [await here.spawn("b", here.waiting("Done.")) for _ in range(8)]
    await here.until_running(*held)
    await _repeat("spawn, queued behind others", lambda: here.spawn("b", "%say Done."), 50)
    await _repeat("spawn --node any, two nodes", lambda: here.spawn("any", "%say Done."), 20)
    here.go.touch()


async def _repeat(what: str, call, calls: int = CALLS) -> None:  # type: ignore[no-untyped-def]
    taken = []
    for _ in range(calls):
        began = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - began)
    taken.sort()
    print(f"{what}: p50 {taken[calls // 2] * 1000:.1f} ms, p99 {taken[calls * 99 // 100] * 1000:.1f} ms")


def _memory(here: RayStage) -> None:
    for node in here.cluster.nodes.values():
        of_ray = sum(
            _pss(pid) for pid in marked(node.mark) if is_of_ray(pid) or name_of(pid).endswith(b"Agent")
        )
        print(f"Ray itself on {node.name}: {of_ray:.0f} MB")
    for pid in marked(here.cluster.mark):
        words = name_of(pid)
        if words == b"ray::NodeActor" or words.endswith((b"jobs\0node", b"pipe")):
            print(f"{words[-30:]!r}: {_pss(pid):.0f} MB")
    driver = here.nodes.driver_pid
    print(f"driver: {_pss(driver or 0):.0f} MB; load {os.getloadavg()[0]:.1f}")


def _pss(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return int(text.partition("\nPss:")[2].split()[0]) * 1024 / MEGABYTE


def _show(what: str, seconds: float) -> None:
    print(f"{what}: {seconds:.2f} s")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
