"""`laneway jobs watch`: a table in place on a terminal, lines in a pipe, until the jobs have ended."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from laneway.cli.jobs.live_table import LiveTable
from laneway.cli.jobs.table import table
from laneway.cli.jobs.watching import screen
from laneway.terminal.foreign import cells
from laneway.terminal.style import Style
from tests.cli.jobs.support import shell
from tests.cli.support import in_terminal
from tests.jobs.stage import reading, spawn

PLAIN = Style(io.StringIO())


@pytest.mark.covers("J-boss.2")
async def test_in_a_pipe_each_change_is_a_line_and_it_ends_with_the_jobs(tmp_path: Path) -> None:
    """For programs as data; without anything to watch in one sentence."""
    async with shell(tmp_path) as person:
        jobs = person.jobs
        assert await person.out("watch") == "No job is running or queued: there is nothing to watch.\n"
        job = spawn(jobs, reading("%say \x1b[31mone"))
        other = spawn(jobs, reading("%fail 400 no"))
        ran = await person.run("watch", job.job_id, other.job_id)
        assert (ran.code, ran.err) == (1, "")
        lines = [line.split("  ") for line in ran.out.splitlines()]
        assert {(line[1], line[2]) for line in lines} >= {
            (job.job_id, "succeeded"),
            (other.job_id, "failed"),
        }
        assert len({(line[1], line[2]) for line in lines}) == len(lines), "a line is a change"
        assert "%say \\x1b[31mone" in ran.out
        data = await person.run("watch", job.job_id, "--json")
        (row,) = map(json.loads, data.out.splitlines())
        assert (data.code, row["jobId"], row["status"]) == (0, job.job_id, "succeeded")


@pytest.mark.covers("J-boss.2")
async def test_on_a_terminal_one_table_is_drawn_in_place_until_all_have_ended(tmp_path: Path) -> None:
    """In whatever size the window is; what was on the screen before stays."""
    async with shell(tmp_path) as person:
        jobs = person.jobs
        go = person.here.state / "go"
        prompt = f"%run until test -e {go}; do sleep 0.02; done\n%say Done."
        first, second = spawn(jobs, reading(prompt)), spawn(jobs, reading(prompt))
        async with in_terminal("jobs", "watch", env=person.env, cwd=tmp_path) as there:
            await there.wait_for("2 running · Ctrl-C leaves the jobs alone")
            await there.wait_for("until test")
            jobs.cancel(second.job_id)
            await there.wait_for("1 running · 1 ended")
            there.resize(12, 50)
            await there.wait_until(lambda: "TITLE" in there.text and "NOTE" not in there.text, "a new table")
            go.touch()
            assert (await there.wait_end()).code == 1
            rows = [row for row in there.rows if row]
            assert [row.split()[:2] for row in rows[-3:-1]] == [
                [first.job_id[-8:], "succeeded"],
                [second.job_id[-8:], "cancelled"],
            ]
            assert rows[-1].startswith("2 ended")
            assert sum("STATUS" in row for row in rows) == 1
            assert there.raw.count(b"\x1b[?25l") == there.raw.count(b"\x1b[?25h") == 1
            assert b"\x1b[2J" not in there.raw


async def test_who_leaves_with_ctrl_c_leaves_the_jobs_alone(tmp_path: Path) -> None:
    """And is told so; without colours if that is wanted, and in lines where the cursor cannot move."""
    async with shell(tmp_path) as person:
        job = spawn(person.jobs, reading("%run sleep 1000"))
        env = {**person.env, "NO_COLOR": "1"}
        async with in_terminal("jobs", "watch", env=env, cwd=tmp_path) as there:
            await there.wait_for("1 running · Ctrl-C leaves the jobs alone")
            there.press("ctrl-c")
            assert (await there.wait_end()).code == 130
            assert "laneway: you have left; the jobs go on" in there.text
            assert not re.search(rb"\x1b\[[\d;]*m", there.raw)  # the cursor may move
        assert not person.jobs.get(job.job_id).has_ended
        async with in_terminal("jobs", "watch", env={**env, "TERM": "dumb"}, cwd=tmp_path) as there:
            await there.wait_for(f"{job.job_id}  running")
            there.press("ctrl-c")
            assert (await there.wait_end()).code == 130
            assert b"\x1b" not in there.raw


def row(number: int, status: str, **more: Any) -> dict[str, Any]:
    return {
        "jobId": f"job-{number:016x}",
        "status": status,
        "title": f"title {number}",
        "mode": "read",
        **more,
    }


@pytest.mark.parametrize("columns", [10, 24, 40, 60, 80, 120, 200])
def test_no_row_is_wider_than_the_terminal(columns: int) -> None:
    """Whatever is in it; the id stays as long as it can."""
    rows = [
        row(1, "running", elapsedMs=61_000, tokens=12_345, activity="npm test " * 20),
        row(2, "timed_out", elapsedMs=3_700_000, error="wall: 漢字" * 30),
        row(3, "queued", after="job-0000000000000001") | {"title": "\x1b[2J\n" + "long " * 50},
    ]
    lines = table(rows, columns=columns, style=PLAIN)
    if columns >= 20:
        assert max(map(cells, lines)) <= columns
        assert all(
            each["jobId"].endswith(line.split()[0]) for line, each in zip(lines[1:], rows, strict=True)
        )
        assert min(len(line.split()[0]) for line in lines[1:]) >= 8
        assert "timed out" in lines[2]
    assert all(line.isprintable() for line in lines)


def test_a_low_terminal_shows_what_runs_before_what_waits_and_what_has_ended() -> None:
    """In the order of their age, and says how many are left out."""
    rows = [row(1, "succeeded"), row(2, "queued"), row(3, "running"), row(4, "failed"), row(5, "running")]
    lines = screen(rows, 80, 6, PLAIN)
    assert [line.split()[0] for line in lines[1:3]] == [rows[2]["jobId"], rows[4]["jobId"]]
    assert lines[3:] == ["… and 3 more", "2 running · 1 queued · 2 ended · Ctrl-C leaves the jobs alone"]
    assert len(screen(rows, 80, 24, PLAIN)) == 7


def test_only_what_differs_is_written_again() -> None:
    """Rows go and come; the terminal gets wider and narrower."""
    shape = [80]
    out = io.StringIO()
    live = LiveTable(out, lambda stream: (shape[0], 24))

    def drawn(*rows: str) -> str:
        out.seek(0)
        out.truncate()
        live.draw(rows)
        return out.getvalue()

    assert drawn("a", "b") == "\x1b[?25l\x1b[Ja\x1b[K\r\nb\x1b[K\r\n"
    assert drawn("a", "b") == ""
    assert drawn("a", "c") == "\x1b[2A\r\r\nc\x1b[K\r\n"
    assert drawn("a") == "\x1b[2A\r\r\n\x1b[J"
    shape[0] = 10
    assert drawn("x" * 8, "y") == "\x1b[1A\r\x1b[Jxxxxxxxx\x1b[K\r\ny\x1b[K\r\n"
    shape[0] = 4
    assert drawn("x") == "\x1b[3A\r\x1b[Jx\x1b[K\r\n", "the long row has become two"
    live.close()
    assert out.getvalue().endswith("\x1b[?25h")
