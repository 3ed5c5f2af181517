"""Garbage in what jobs keep on disk, cursors and ids of others, and several dispatchers at once."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import BadCursor
from laneway.core.tools import Caller, ToolResult
from laneway.jobs.model import ENDED, Job, JobLimits
from laneway.jobs.service import Jobs
from laneway.jobs.tools import JobTools
from laneway.jobs.wait_ledger import WaitFor, WaitLedger
from tests.adversary.false_codex import false_codex
from tests.adversary.odd_files import UNREADABLE, Maker, folder
from tests.jobs.killing import PAUSE_S, all_ended, taken
from tests.jobs.stage import DEADLINE_S, reading, spawn, stage, writing

GARBAGE: tuple[bytes | Maker, ...] = (
    b"",
    b"\0" * 100,
    b"{",
    b"[]",
    b'{"prompt": 7}',
    b"\xff\xfe",
    b"[" * 10_000,
)
BAD_VALUES: tuple[str | bytes | int, ...] = ("{", "[" * 10_000, b"\xff", 7)
COLUMNS = (
    ("borders", "snapshot"),
    ("borders", "active"),
    ("runs", "baseline"),
    ("evidence", "facts"),
    ("job_waits", "arguments"),
    ("job_waits", "result"),
)
IS_CHAOS = bool(os.environ.get("LANEWAY_CHAOS"))
"""Every value in every column; else two of them, others in the next."""
ANN, BOB = (Caller(agent_id="", principal=f"http:{name}") for name in ("ann", "bob"))
LOCAL = Caller(agent_id="", principal="local")


async def answer(jobs: Jobs, name: str, caller: Caller = LOCAL, **arguments: Any) -> ToolResult:
    """What a tool says: an answer, or a sentence."""
    result = await JobTools(lambda: jobs, LoopClock()).handler(name)(caller, arguments)
    if result.is_error:
        assert result.text.endswith((".", "one.")), result.text
        assert "Traceback" not in result.text
    return result


LOOKS: dict[str, dict[str, Any]] = {
    "codex_status": {},
    "codex_result": {},
    "codex_events": {},
    "codex_cancel": {"force": True},
}


async def look_everywhere(jobs: Jobs, job: Job) -> list[ToolResult]:
    found = [await answer(jobs, name, jobId=job.job_id, **more) for name, more in LOOKS.items()]
    found.append(await answer(jobs, "codex_list"))
    return [*found, await answer(jobs, "codex_wait_all", jobIds=[job.job_id], timeoutMs=0)]


def put(path: Path, made: bytes | Maker) -> None:
    if isinstance(made, bytes):
        path.write_bytes(made)
    else:
        made(path)


def removed(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)


async def test_garbage_in_the_folder_of_an_ended_job_is_a_sentence(tmp_path: Path) -> None:
    """Whatever it is, and whichever of its files; every other job is as it was."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(codex=false_codex(tmp_path, "codex", "end()"))
        good, bad = spawn(jobs, reading("good")), spawn(jobs, writing("bad"))
        await here.ended(jobs, good, bad)
        files = here.places.job(bad.job_id)
        for path in (files.result, files.spec, files.events, files.cancel, files.lock):
            kept = path.read_bytes() if path.exists() else None
            for made in GARBAGE + UNREADABLE:
                removed(path)
                put(path, made)
                for result in await look_everywhere(jobs, bad):
                    assert result.text
                if path == files.spec and made != b"{":
                    assert (await answer(jobs, "codex_send", jobId=bad.job_id, prompt="x")).is_error
                jobs.look()
            removed(path)
            if kept is not None:
                path.write_bytes(kept)
        assert (await answer(jobs, "codex_result", jobId=good.job_id)).data is not None
        assert jobs.unfinished() == []


@pytest.mark.covers("J-supervision.2")
async def test_a_queued_job_whose_files_are_garbage_ends_and_frees_its_slot(tmp_path: Path) -> None:
    """It may fail, or not need them; nothing waits for it for ever."""
    limits = JobLimits(read=8, write=1, total=8)
    names = ("spec", "environment", "events", "result", "stderr", "schema", "supervisor_log", "cancel")
    async with stage(tmp_path) as here:
        jobs = here.jobs(limits, codex=false_codex(tmp_path, "codex", "end('{}')"))
        for made in (b"{", folder):
            started = [jobs.spawn(reading("x", output_schema={"type": "object"})) for _ in names]
            for job, name in zip(started, names, strict=True):
                path: Path = getattr(here.places.job(job.job_id), name)
                removed(path)
                put(path, made)
            jobs.dispatch()
            ended = await all_ended(here, jobs, [job.job_id for job in started])
            fates = {name: job.status for name, job in zip(names, ended, strict=True)}
            assert fates["spec"] == fates["environment"] == "failed", fates
        async with asyncio.timeout(DEADLINE_S):
            while taken(here, limits) != {"total": 0, "read": 0, "write": 0}:
                await asyncio.sleep(PAUSE_S)
        after = spawn(jobs, reading("x"))
        (last,) = await all_ended(here, jobs, [after.job_id])
        assert last.status == "succeeded"


async def test_garbage_in_the_ledger_costs_only_its_own_row(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs(codex=false_codex(tmp_path, "codex", "end()"))
        good, bad = spawn(jobs, reading("good")), spawn(jobs, reading("bad"))
        await here.ended(jobs, good, bad)
        for column, value in (
            ("facts", "{"),
            ("failure", "[]"),
            ("status", "odd"),
            ("tokens", "many"),
            ("mode", 7),
        ):
            with sqlite3.connect(here.places.database) as connection:
                (kept,) = connection.execute(
                    f"SELECT {column} FROM jobs WHERE job_id = ?", (bad.job_id,)
                ).fetchone()
                connection.execute(f"UPDATE jobs SET {column} = ? WHERE job_id = ?", (value, bad.job_id))
            assert (await answer(jobs, "codex_status", jobId=good.job_id)).data is not None, column
            for result in await look_everywhere(jobs, bad):
                assert result.text, column
            with sqlite3.connect(here.places.database) as connection:
                connection.execute(f"UPDATE jobs SET {column} = ? WHERE job_id = ?", (kept, bad.job_id))
        await here.ended(jobs, *jobs.unfinished())


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_garbage_in_what_is_known_of_runs_and_waits_is_a_sentence(tmp_path: Path) -> None:
    """And keeps no later job from running: a run of which nothing can be said is closed."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(codex=false_codex(tmp_path, "codex", "end()"))
        waits = WaitLedger(jobs.ledger)
        job = spawn(jobs, writing("x"))
        await here.ended(jobs, job)
        for number, (table, column) in enumerate(COLUMNS):
            values = BAD_VALUES if IS_CHAOS else (BAD_VALUES[number % 4], BAD_VALUES[(number + 2) % 4])
            for value in values:
                wait = waits.add("local", "codex_wait_all", WaitFor("all", (job.job_id,)), None)
                with sqlite3.connect(here.places.database) as connection:
                    connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
                run = jobs.get(job.job_id).run_id
                for action in ("show", "accept", "rollback"):
                    assert (await answer(jobs, "codex_resolve", action=action, run=run)).text
                for result in await look_everywhere(jobs, job):
                    assert result.text, (table, column)
                assert waits.get(wait.task_id, "local") is None or table != "job_waits"
                waits.listed("local", None, 10)
                job = spawn(jobs, writing("y"))
                (ended,) = await here.ended(jobs, job)
                assert ended.status == "succeeded", (table, column, value, ended)
                with sqlite3.connect(here.places.database) as connection:
                    others = "UPDATE runs SET state = 'accepted' WHERE run_id IS NOT ?"
                    connection.execute(others, (jobs.get(job.job_id).run_id,))


@pytest.mark.covers("J-tools.18")
async def test_a_token_finds_nothing_of_the_jobs_of_another(tmp_path: Path) -> None:
    """Not by id, run, cursor, list, tag, wait, follow-up or resolution; nor in numbers."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(codex=false_codex(tmp_path, "codex", "end()"))
        job, own = (
            spawn(jobs, writing("x", tags=("t",)), owner=ANN.principal),
            spawn(jobs, reading("y"), owner=BOB.principal),
        )
        await here.ended(jobs, job, own)
        run = jobs.get(job.job_id).run_id
        page = await answer(jobs, "codex_events", ANN, jobId=job.job_id)
        assert page.data is not None
        missing = {
            await_name: (await answer(jobs, await_name, BOB, **arguments))
            .text.replace(job.job_id, "ID")
            .replace(run, "RUN")
            for await_name, arguments in (
                ("codex_status", {"jobId": job.job_id}),
                ("codex_result", {"jobId": job.job_id}),
                ("codex_events", {"jobId": job.job_id, "cursor": page.data["nextCursor"]}),
                ("codex_cancel", {"jobId": job.job_id, "force": True}),
                ("codex_send", {"jobId": job.job_id, "prompt": "x"}),
                ("codex_wait_any", {"jobIds": [own.job_id, job.job_id]}),
                ("codex_resolve", {"action": "show", "run": run}),
                ("codex_resolve", {"action": "rollback", "cwd": str(here.work)}),
            )
        }
        unknown = (await answer(jobs, "codex_status", BOB, jobId="job-0000000000000000")).text
        assert set(missing.values()) - {missing["codex_resolve"]} == {
            unknown.replace("job-0000000000000000", "ID")
        }
        listed = (await answer(jobs, "codex_list", BOB)).data
        assert listed is not None
        assert [row["jobId"] for row in listed["jobs"]] == [own.job_id]
        assert run not in json.dumps(listed)
        assert listed["tokens"]["today"] == jobs.get(own.job_id).tokens
        for filters in ({"tag": "t"}, {"run": run}, {"cursor": "n99"}):
            found = (await answer(jobs, "codex_list", BOB, **filters)).data
            assert found is not None
            assert job.job_id not in json.dumps(found)
        assert (await answer(jobs, "codex_wait_all", BOB)).data == {
            "ended": [],
            "pending": [],
            "nextCursor": "w1:",
            "timedOut": False,
        }


@pytest.mark.covers("J-tools.20", "J-supervision.9")
async def test_cursors_of_other_jobs_and_forged_ones_are_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs(codex=false_codex(tmp_path, "codex", "end()"))
        one, two = spawn(jobs, reading("x")), spawn(jobs, reading("y"))
        await here.ended(jobs, one, two)
        cursor = jobs.events(one).next_cursor
        for job, odd in (
            (two, cursor),
            (one, cursor[:-3]),
            (one, "x" * 100_000),
            (one, "é"),
            (one, "bnVsbA"),
        ):
            with pytest.raises(BadCursor):
                jobs.events(job, odd)
            assert (await answer(jobs, "codex_events", jobId=job.job_id, cursor=odd)).is_error
        for odd in ("w1:" + "1," * 20_000, "w1:5-1", "w2:1", "n1", "w1:" + "9" * 30):
            assert (await answer(jobs, "codex_wait_any", jobIds=[one.job_id], cursor=odd)).is_error
        for odd in ("n", "n-1", "n1.5", "nⅧ", "n" + "9" * 30):
            assert (await answer(jobs, "codex_list", cursor=odd)).is_error


@pytest.mark.covers("004-bounds.2", "J-supervision.5")
async def test_dispatchers_at_once_start_every_job_once(tmp_path: Path) -> None:
    """And never more than there is room for."""
    limits = JobLimits(read=3, write=1, total=3)
    body = "import time; item(0, type='agent_message', text=str(os.getpid())); time.sleep(0.1)\nend()"
    async with stage(tmp_path) as here:
        codex = false_codex(tmp_path, "codex", body)
        many = [here.jobs(limits, codex=codex) for _ in range(6)]
        queued = [many[number % 6].spawn(reading(str(number))) for number in range(9)]
        started = await asyncio.gather(*(asyncio.to_thread(jobs.dispatch) for jobs in many))
        assert sorted(job_id for ids in started for job_id in ids) == sorted(job.job_id for job in queued[:3])
        ended = await here.ended(many[0], *queued)
        assert {job.status for job in ended} <= set(ENDED)
        for job in ended:
            events = here.events(many[0], job)
            begun = [event for event in events if event["content"].get("kind") == "thread.started"]
            assert (job.status, job.attempt, len(begun)) == ("succeeded", 1, 1)
