"""`laneway jobs` with another machine, as processes: also killed ones, which are followed by others."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.jobs.places import JobsLayout
from tests.cli.support import Ran, laneway, start
from tests.jobs.nodes.homes import NODE, Homes, homes

KILLS = 20 if os.environ.get("LANEWAY_CHAOS") else 3
SEED = 20261118


class Person:
    """At the near machine, which has no Codex of its own."""

    def __init__(self, both: Homes, top: Path) -> None:
        home = top / "near"
        settings = home / ".config" / "laneway" / "config.toml"
        settings.parent.mkdir(parents=True)
        command = msgspec.json.encode(both.command).decode()
        settings.write_text(
            f"[laneway.jobs.nodes.{NODE}]\ncommand = {command}\n"
            f'[laneway.jobs.repositories]\nsite = "{both.site}"\n'
        )
        self.site = both.site
        self.env = {
            "HOME": str(home),
            "XDG_STATE_HOME": str(top / "near-xdg"),
            "CODEX_HOME": str(home / "codex"),
            "LANEWAY_CODEX_BIN": "/no/codex",
        }
        both.places = JobsLayout(
            top / "near-xdg" / "laneway" / "jobs", top / "near-xdg" / "laneway" / "laneway.db"
        )

    async def run(self, *words: str) -> Ran:
        return await laneway("jobs", *words, env=self.env)

    async def out(self, *words: str) -> str:
        ran = await self.run(*words)
        assert (ran.code, ran.err) == (0, ""), (ran.out, ran.err)
        return ran.out

    async def start(self, *words: str) -> Process:
        return await start("jobs", *words, env=self.env)

    async def spawn(self, prompt: str, *words: str) -> str:
        spawn = ("spawn", "--node", NODE, "-C", str(self.site), *words, prompt)
        return (await self.out(*spawn)).strip()


@asynccontextmanager
async def person(tmp_path: Path) -> AsyncIterator[tuple[Person, Homes]]:
    async with homes(tmp_path) as both:
        yield Person(both, tmp_path), both


async def test_a_machine_out_of_reach_is_named_with_the_reason(tmp_path: Path) -> None:
    """By what starts a job for it, lists it, or shows one; the job waits."""
    async with person(tmp_path) as (ann, both):
        both.up.unlink()
        ran = await ann.run("spawn", "--node", NODE, "-C", str(ann.site), "%say x")
        job_id = ran.out.strip()
        why = "gpu1 is out of reach: its command ended (exit code 255): no route to gpu1."
        assert (ran.code, ran.err) == (0, f"laneway: {why} The job waits here until it is back.\n")
        assert why in (await ann.out("list")).splitlines()
        assert f"  ! {why}" in (await ann.out("status", job_id)).splitlines()
        both.up.touch()
        assert "succeeded" in await ann.out("wait", job_id)
        assert "out of reach" not in await ann.out("list")


async def test_a_job_on_another_machine_is_like_any_other(tmp_path: Path) -> None:
    """Spawned, listed, waited for, shown, continued; by the commands that all jobs have."""
    async with person(tmp_path) as (ann, both):
        job_id = await ann.spawn("%run echo here\n%say All well.")
        assert "here" in await ann.out("events", job_id, "--follow")
        assert "succeeded" in await ann.out("wait", job_id)
        assert (await ann.out("result", job_id, "--message")).strip() == "All well."
        (row,) = json.loads(await ann.out("list", "--json"))["jobs"]
        assert (row["node"], row["status"]) == (NODE, "succeeded")
        assert "All well." in await ann.out("send", job_id[-8:], "%say All well.", "--wait")
        assert len(both.far.ledger.listed()) == 2
        assert "succeeded" in await ann.out("watch", job_id)


async def test_one_sentence_says_what_is_wrong(tmp_path: Path) -> None:
    async with person(tmp_path) as (ann, both):
        unknown = await ann.run("spawn", "--node", "gpu2", "-C", str(ann.site), "x")
        assert (unknown.code, unknown.err) == (
            2,
            "laneway: There is no machine gpu2: jobs.nodes has local, gpu1.\n",
        )
        nowhere = await ann.run("spawn", "--node", NODE, "-C", str(tmp_path), "x")
        assert nowhere.code == 2
        assert "is in no repository of jobs.repositories" in nowhere.err
        both.up.unlink()
        job_id = (await ann.run("spawn", "--node", NODE, "-C", str(ann.site), "%say x")).out.strip()
        line, _ = (await ann.out("status", job_id)).splitlines()
        assert line == f"{job_id}  unreachable  was queued when last heard of"
        events = await ann.run("events", job_id)
        assert (events.code, events.out) == (0, "It has done nothing so far.\n")
        assert "unreachable" in await ann.out("list")


async def test_a_killed_process_is_followed_by_another_that_knows_all(tmp_path: Path) -> None:
    """kill -9 of whoever waits: the pipe ends with it, the job does not, and the next one adopts it."""
    async with person(tmp_path) as (ann, both):
        go = tmp_path / "go"
        job_id = await ann.spawn(f"%run until test -e {go}; do sleep 0.02; done\n%say Done.")
        waiting = await ann.start("wait", job_id)
        job = both.far.get(job_id)
        await both.there.until(both.far, job, lambda each: "until" in each.activity)
        waiting.kill()
        await waiting.wait()
        assert json.loads(await ann.out("status", job_id, "--json"))["status"] == "running"
        go.touch()
        assert "succeeded" in await ann.out("wait", job_id)
        assert (await ann.out("result", job_id, "--message")).strip() == "Done."


@pytest.mark.chaos
async def test_a_spawn_that_is_killed_at_any_moment_is_one_job_or_none(tmp_path: Path) -> None:
    """What stands in the ledger here is started there, once; nothing is there that is not here."""
    chance = random.Random(SEED)
    async with person(tmp_path) as (ann, both):
        for number in range(KILLS):
            words = ("spawn", "--node", NODE, "-C", str(ann.site), f"%say Number {number}.")
            process = await ann.start(*words)
            try:
                async with asyncio.timeout(chance.uniform(0.05, 1.5)):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        last = await ann.spawn("%say Last.")
        assert (await ann.run("wait")).code == 0
        here = {row["jobId"]: row["status"] for row in json.loads(await ann.out("list", "--json"))["jobs"]}
        there = {job.job_id: job.status for job in both.far.ledger.listed()}
        assert here == there
        assert here[last] == "succeeded"
        asked = [str(each) for each in both.there.requests]
        for number in range(KILLS):
            assert sum(f"Number {number}." in each for each in asked) <= 1


# ── the far side by itself ─────────────────────────────────────────────────


async def test_the_far_side_speaks_protocol_and_nothing_else_and_ends_with_its_input(tmp_path: Path) -> None:
    """Nonsense is answered as JSON-RPC has it."""
    async with homes(tmp_path):
        env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "own")}
        process = await start("jobs", "node", env=env, stdin=PIPE)
        lines: list[dict[str, Any]] = []
        assert process.stdin
        assert process.stdout
        for line in (b'{"id":1,"method":"hello"}\n', b"nonsense\n", b'{"id":2,"method":"dance"}\n'):
            process.stdin.write(line)
            lines.append(json.loads(await process.stdout.readline()))
        process.stdin.close()
        out, err = await process.communicate()
        assert (process.returncode, out, err) == (0, b"", b"")
        hello, nonsense, dance = lines
        assert hello["result"]["repositories"] == []
        assert nonsense["error"]["code"] == -32700
        assert dance["error"]["data"]["kind"] == "usage"


async def test_the_far_side_ends_by_a_signal(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "own")}
    process = await start("jobs", "node", env=env, stdin=PIPE)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b'{"id":1,"method":"hello"}\n')
    await process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert process.returncode == 0


async def test_a_worker_is_no_node(tmp_path: Path) -> None:
    ran = await laneway("jobs", "node", env={"HOME": str(tmp_path), "LANEWAY_JOB": "job-0123456789abcdef"})
    assert ran.code == 2
    assert "inside a worker of a background job" in ran.err
