"""`laneway jobs list|status|result|events`: for people, and word for word what the tools answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from laneway.base.clock import LoopClock
from laneway.core.tools import Caller
from laneway.jobs.tools import JobTools
from tests.cli.jobs.support import Shell, shell
from tests.cli.support import start
from tests.jobs.stage import reading, spawn, writing

ANN = Caller(agent_id="", principal="local")


async def tool(person: Shell, name: str, **arguments: object) -> dict[str, object]:
    """What the MCP tool answers to the same."""
    result = await JobTools(lambda: person.jobs, LoopClock()).handler(name)(ANN, arguments)
    answer: dict[str, object] = json.loads(result.text)
    return answer


async def test_an_empty_list_says_how_to_begin_and_a_filter_that_nothing_matches(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        assert await person.out() == 'There are no background jobs: `laneway jobs spawn "…"` starts one.\n'
        assert await person.out("list", "--tag", "x") == "No job matches.\n"
        assert (await person.data("list"))["jobs"] == []


@pytest.mark.covers("J-tools.1", "J-workers.12")
async def test_the_list_has_a_row_for_each_job_and_the_slots_in_use(tmp_path: Path) -> None:
    """Whatever a prompt holds; failures with their reason; filters and pages."""
    async with shell(tmp_path) as person:
        jobs = person.jobs
        good = spawn(jobs, writing("%patch new.txt one\n%say Done.", tags=("x",)))
        bad = spawn(jobs, reading("%fail 400 no \x1b[31mluck"))
        await person.here.ended(jobs, good, bad)
        lines = (await person.out()).splitlines()
        assert lines[0].split() == ["JOB", "STATUS", "MODE", "TIME", "TOKENS", "TITLE", "NOTE"]
        assert lines[1].startswith(f"{bad.job_id}  failed     read")
        assert "%fail 400 no \\x1b[31mluck" in lines[1]
        assert lines[2].startswith(f"{good.job_id}  succeeded  write")
        used = (await person.data("list"))["tokens"]
        assert lines[3] == f"0 of 8 reading · 0 of 2 writing · 0 queued · {used['today']} tokens today"
        run = jobs.get(good.job_id).run_id
        assert lines[4:] == [f"tokens by run: {run} {used['byRun'][run]}"]
        assert "\x1b" not in "".join(lines)
        assert await person.data("list") == await tool(person, "codex_list") == await person.data()
        assert bad.job_id in await person.out("--status", "failed")
        assert [row["jobId"] for row in (await person.data("list", "--tag", "x"))["jobs"]] == [good.job_id]
        assert bad.job_id in await person.out("list", "--status", "failed")
        page = await person.data("list", "--limit", "1")
        assert f"older ones: --cursor {page['nextCursor']}" in await person.out("list", "--limit", "1")
        rest = await person.data("list", "--cursor", page["nextCursor"])
        assert [row["jobId"] for row in rest["jobs"]] == [good.job_id]


@pytest.mark.covers("J-tools.20")
async def test_a_broken_cursor_of_a_list_is_a_sentence(tmp_path: Path) -> None:
    """Also a number that no database can hold."""
    async with shell(tmp_path) as person:
        for cursor in ("x", "n", "n-1", "n" + "9" * 19, "n٣"):
            ran = await person.run("list", "--cursor", cursor)
            assert (ran.code, ran.out) == (2, "")
            assert ran.err == "laneway: This cursor is not valid for this list: start again without one.\n"


@pytest.mark.covers("004-tools.2", "004-tools.3", "J-tools.1", "J-tools.6")
async def test_status_and_result_are_what_the_tools_answer(tmp_path: Path) -> None:
    """And for people the same, fenced; the exit code of a result says how the job ended."""
    async with shell(tmp_path) as person:
        jobs = person.jobs
        good = spawn(jobs, writing("%patch new.txt one\n%run echo more >> a.txt\n%say Done.\nTruly.\x07"))
        bad = spawn(jobs, reading("%fail 400 no luck"))
        await person.here.ended(jobs, good, bad)
        assert await person.data("status", good.job_id) == await tool(
            person, "codex_status", jobId=good.job_id
        )
        both = (await person.out("status", good.job_id, bad.job_id[-6:])).splitlines()
        assert [line.split("  ")[:2] for line in both] == [
            [good.job_id, "succeeded"],
            [bad.job_id, "failed"],
        ]
        result = await person.data("result", good.job_id)
        assert result == await tool(person, "codex_result", jobId=good.job_id)
        rows = (await person.out("result", good.job_id)).splitlines()
        assert rows[1] == "  │ Done."
        assert "  modified  a.txt  (alone)" in rows
        assert "  added     new.txt  (patch)" in rows
        assert (await person.run("result", good.job_id, "--message")).out == f"{result['lastMessage']}\n"
        failed = await person.run("result", bad.job_id)
        assert (failed.code, failed.out.splitlines()[0].split("  ")[:2]) == (1, [bad.job_id, "failed"])
        assert failed.out.splitlines()[1].startswith("  ! turn: ")
        assert "{" not in failed.out
        unknown = await person.run("result", "job-0123456789abcdef")
        assert (unknown.code, unknown.err) == (
            2,
            "laneway: There is no job job-0123456789abcdef: `laneway jobs list` shows them.\n",
        )


@pytest.mark.covers("004-tools.5")
async def test_events_are_told_page_by_page_and_to_people_in_rows(tmp_path: Path) -> None:
    """Filters and limits of the tool; long output is cut unless all of it is asked for."""
    async with shell(tmp_path) as person:
        jobs = person.jobs
        job = spawn(jobs, reading("%run seq 1 30\n%say Seen.\x1b[31m"))
        await person.here.ended(jobs, job)
        assert await person.data("events", job.job_id) == await tool(person, "codex_events", jobId=job.job_id)
        rows = (await person.out("events", job.job_id)).splitlines()
        kinds = [row[10:21].strip() for row in rows if row[2:3] == ":"]
        assert kinds[-1] == "final"
        assert {"progress", "tool call", "tool result", "message"} <= set(kinds)
        assert "  │ Seen.\\x1b[31m" in rows
        assert "  … 20 more lines: --full" in rows
        assert "  │ 30" in (await person.out("events", job.job_id, "--full")).splitlines()
        only = await person.data("events", job.job_id, "--type", "message", "--type", "final")
        assert [event["type"] for event in only["events"]] == ["message", "final"]
        first = await person.data("events", job.job_id, "--limit", "1")
        assert len(first["events"]) == 1
        rest = await person.data("events", job.job_id, "--cursor", first["nextCursor"])
        assert rest["done"]
        last = ("--type", "tool_call", "--cursor", rest["nextCursor"])
        assert await person.out("events", job.job_id, *last) == "There are no such events.\n"
        waiting = jobs.spawn(reading("%say later"))
        assert await person.out("events", waiting.job_id) == "It has done nothing so far.\n"
        wrong = await person.run("events", job.job_id, "--cursor", "broken")
        assert (wrong.code, wrong.out) == (2, "")


async def test_events_are_followed_until_the_job_has_ended(tmp_path: Path) -> None:
    """Started before the job does anything; the last line is its end."""
    async with shell(tmp_path) as person:
        go = person.here.state / "go"
        job = spawn(person.jobs, reading(f"%run until test -e {go}; do sleep 0.02; done\n%say Over."))
        await person.here.until(person.jobs, job, lambda each: "until test" in each.activity)
        words = ("jobs", "events", job.job_id, "--follow", "--json")
        async with asyncio.timeout(60):
            process = await start(*words, env=person.env)
            assert process.stdout is not None
            first = json.loads(await process.stdout.readline())
            go.touch()
            told = [first, *map(json.loads, (await process.stdout.read()).splitlines())]
            assert await process.wait() == 0
        assert [page["done"] for page in told][-1]
        kinds = [event["type"] for page in told for event in page["events"]]
        assert ("message" in kinds, kinds[-1]) == (True, "final")
        assert [page["done"] for page in told].count(True) == 1


async def test_a_ledger_that_is_damaged_is_kept_aside_and_named(tmp_path: Path) -> None:
    """Whoever looks next is told where his jobs have gone."""
    async with shell(tmp_path) as person:
        ledger = tmp_path / "xdg" / "laneway" / "laneway.db"
        ledger.parent.mkdir(parents=True)
        ledger.write_bytes(b"not a database " * 500)
        ran = await person.run("list")
        (kept,) = ledger.parent.glob("laneway.db.corrupt-*")
        assert (ran.code, f"It is kept as {kept.name}; a new one begins." in ran.err) == (0, True), ran
        assert "There are no background jobs" in ran.out
        again = await person.run("list")
        assert (again.code, again.err) == (0, "")
