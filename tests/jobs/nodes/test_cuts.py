"""The pipe is cut at random, within and between messages: nothing is lost, nothing is done or told twice."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import NodeUnreachable
from laneway.jobs.tools import JobTools
from tests.jobs.nodes.homes import ANN, NODE, Homes, Near, homes

LEAKY = Path(__file__).with_name("leaky.py")
SEEDS = range(20) if os.environ.get("LANEWAY_CHAOS") else range(1)
JOBS = 6
CANCELLED = 2
CUTS_WITHIN, SURE_CUTS = 12, 4
LONG_S = 100.0


async def insisted(ask: Any, *arguments: Any, **named: Any) -> Any:
    """As a caller who tries again while the machine is out of reach."""
    while True:
        try:
            return await ask(*arguments, **named)
        except NodeUnreachable:
            await asyncio.sleep(0.01)


async def read_events(near: Near, job_id: str) -> list[dict[str, Any]]:
    """As they come, a few at a time."""
    events: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        page = await insisted(near.ask, "events", jobId=job_id, maxEvents=2, **more)
        events += page["events"]
        more = {"cursor": page["nextCursor"]}
        if page["done"]:
            return events


async def wait_for_each(near: Near, job_ids: list[str]) -> list[str]:
    """One after the other, by one cursor."""
    told: list[str] = []
    more: dict[str, Any] = {}
    while True:
        answer = await near.ask("wait_any", jobIds=job_ids, timeoutMs=240_000, **more)
        told += [each["jobId"] for each in answer["ended"]]
        more = {"cursor": answer["nextCursor"]}
        if not answer["pending"]:
            return told


async def cut_now_and_then(near: Near, chance: random.Random) -> None:
    """Kill the command by its pid."""
    while True:
        await asyncio.sleep(chance.uniform(0.1, 3.0))
        near.cut()


@pytest.mark.covers("J-nodes.6")
@pytest.mark.chaos
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_pipe_that_is_cut_at_random_loses_nothing_and_doubles_nothing(
    tmp_path: Path, seed: int
) -> None:
    """Each job started once, each event read once and in order, each end told once; results as there."""
    chance = random.Random(seed)
    draws = tmp_path / "draws"
    # From within the greeting to some messages later; at least the first ones are certain to be reached.
    early = [chance.randrange(20, 2000) for _ in range(SURE_CUTS)]
    later = [chance.randrange(20, 20_000) for _ in range(CUTS_WITHIN - SURE_CUTS)]
    draws.write_text("\n".join(map(str, early + later)))
    async with homes(tmp_path) as both:
        words = [sys.executable, "-I", "-S", str(LEAKY), str(draws), "--", *shlex.split(both.command)]
        async with both.near(nodes={NODE: shlex.join(words)}) as near, asyncio.timeout(LONG_S):
            cutting = asyncio.ensure_future(cut_now_and_then(near, chance))
            try:
                await _play(both, near)
            finally:
                cutting.cancel()
            assert near.pipe.connections > SURE_CUTS


async def _play(both: Homes, near: Near) -> None:
    ordinary = [await near.spawn(f"%run echo part-{n}\n%say Job {n} is done.") for n in range(JOBS)]
    held = [await near.spawn("%hang") for _ in range(CANCELLED)]
    job_ids = ordinary + held
    waiting = asyncio.ensure_future(wait_for_each(near, job_ids))
    reading = asyncio.gather(*(read_events(near, job_id) for job_id in job_ids))
    for job_id in held:
        await insisted(near.ask, "cancel", jobId=job_id)
    told, events = await waiting, await reading
    assert sorted(told) == sorted(job_ids)
    far_jobs = both.far.ledger.listed()
    assert sorted(job.job_id for job in far_jobs) == sorted(job_ids)
    for number, job_id in enumerate(ordinary):
        assert both.far.get(job_id).status == "succeeded"
        # One turn of two requests: the one with the command, the one with its output.
        turns = [each for each in both.there.requests if f"Job {number} is done." in str(each)]
        assert len(turns) == 2, len(turns)
    assert [both.far.get(job_id).status for job_id in held] == ["cancelled"] * CANCELLED

    far = JobTools(lambda: both.far, LoopClock())
    for job_id, read in zip(job_ids, events, strict=True):
        job = both.far.get(job_id)
        assert read == both.there.events(both.far, job)
        near_result = await insisted(near.ask, "result", jobId=job_id)
        assert near_result == await far.answer("codex_result", ANN, {"jobId": job_id})
        assert near.tools.jobs.get(job_id).status == job.status
