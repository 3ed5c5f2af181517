"""`laneway jobs wait` and `cancel`."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.cli.jobs.support import shell
from tests.cli.support import start
from tests.jobs.stage import reading, spawn


async def test_waiting_ends_with_the_jobs_and_the_exit_code_says_how(tmp_path: Path) -> None:
    """Each as soon as it has ended."""
    async with shell(tmp_path) as person:
        jobs = person.jobs
        good, bad = spawn(jobs, reading("%say one")), spawn(jobs, reading("%fail 400 no"))
        ran = await person.run("wait", good.job_id, bad.job_id)
        assert (ran.code, ran.err) == (1, "")
        assert {tuple(line.split("  ")[:2]) for line in ran.out.splitlines()} == {
            (good.job_id, "succeeded"),
            (bad.job_id, "failed"),
        }
        assert (await person.run("wait", good.job_id)).code == 0
        answer = await person.data("wait", good.job_id, bad.job_id, code=1)
        assert {row["jobId"] for row in answer["ended"]} == {good.job_id, bad.job_id}
        assert (answer["pending"], answer["timedOut"]) == ([], False)
        again = await person.data("wait", good.job_id, "--cursor", answer["nextCursor"])
        assert again["ended"] == []
        assert await person.out("wait") == "No job is running or queued: there is nothing to wait for.\n"


@pytest.mark.covers("004-tools.6", "J-tools.11")
async def test_waiting_for_any_ends_with_the_first_and_time_is_limited(tmp_path: Path) -> None:
    """Ctrl-C leaves the job alone."""
    async with shell(tmp_path) as person:
        jobs = person.jobs
        slow, quick = spawn(jobs, reading("%run sleep 1000")), spawn(jobs, reading("%say now"))
        first = await person.run("wait", slow.job_id, quick.job_id, "--any")
        assert (first.code, first.out.split("  ")[:2]) == (0, [quick.job_id, "succeeded"])
        late = await person.run("wait", "--timeout", "10ms")
        assert (late.code, late.out) == (124, "")
        assert (await person.data("wait", "--timeout", "10ms", code=124))["timedOut"]
        process = await start("jobs", "wait", slow.job_id, quick.job_id, env=person.env)
        assert process.stdout is not None
        async with asyncio.timeout(60):
            await process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
        assert (process.returncode, err) == (130, b"\nlaneway: you have left; the jobs go on\n")
        assert not jobs.get(slow.job_id).has_ended


@pytest.mark.covers("004-tools.4")
async def test_jobs_are_cancelled_one_by_one_or_by_force(tmp_path: Path) -> None:
    """An answer for each; one that has ended stays as it is."""
    async with shell(tmp_path) as person:
        jobs = person.jobs
        ended = spawn(jobs, reading("%say one"))
        await person.here.ended(jobs, ended)
        one, other = (spawn(jobs, reading("%run sleep 1000")) for _ in range(2))
        await person.here.until(jobs, other, lambda job: job.thread_id)
        ran = await person.out("cancel", one.job_id, other.job_id, ended.job_id)
        assert [line.split("  ")[1] for line in ran.splitlines()] == ["cancelling", "cancelling", "succeeded"]
        forced = await person.data("cancel", one.job_id, "--force")
        assert forced["status"] in ("cancelling", "cancelled")
        assert (await person.run("wait", one.job_id, "--timeout", "1h", other.job_id)).code == 1
        assert [job.status for job in jobs.many([one.job_id, other.job_id])] == ["cancelled"] * 2
