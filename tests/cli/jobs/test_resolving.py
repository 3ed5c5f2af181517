"""`laneway jobs resolve` and `gc`, at a person's shell."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from laneway.cli.jobs.resolve_show import diff_rows, disputes
from laneway.terminal.style import Style
from tests.cli.jobs.support import Shell, shell
from tests.cli.support import in_terminal
from tests.jobs.stage import reading, spawn, writing
from tests.jobs.test_resolving import together

PLAIN = Style(io.StringIO())


async def resolve(person: Shell, *words: str, code: int = 0) -> list[str]:
    """The rows of one action in the repository."""
    action, *rest = words
    ran = await person.run("resolve", action, "-C", str(person.here.work), *rest)
    assert (ran.code, ran.err) == (code, ""), (ran.out, ran.err)
    return ran.out.splitlines()


@pytest.mark.covers("J-tools.1")
async def test_edits_without_a_conflict_are_shown_and_accepted(tmp_path: Path) -> None:
    """Each path with its evidence; then the run is closed."""
    async with shell(tmp_path) as person:
        jobs, here = person.jobs, person.here
        async with together(here, jobs, "%patch one.txt 1", "%patch two.txt 2") as (one, two):
            pass
        rows = await resolve(person, "show")
        run_id = jobs.get(one.job_id).run_id
        assert rows[0] == f"{run_id}  open  {here.work}"
        assert rows[1].startswith(f"{one.job_id}  succeeded  %patch one.txt")
        assert rows[2] == "    added     one.txt  (patch)"
        assert rows[3].startswith(f"{two.job_id}  succeeded  %patch two.txt")
        assert rows[5] == "No path was changed by two jobs."
        shown = await resolve(person, "show", "--path", "one.txt", "--job", one.job_id)
        assert "  │ +1" in shown
        assert await resolve(person, "accept") == [f"{run_id} is accepted: what its jobs changed stays."]
        again = await person.run("resolve", "accept", "-C", str(here.work))
        assert (again.code, "has no open run" in again.err) == (2, True)
        assert (await resolve(person, "show", run_id))[0] == f"{run_id}  accepted  {here.work}"


@pytest.mark.covers("J-a2.14")
async def test_a_conflict_is_shown_three_ways_rolled_back_run_again_and_undone(tmp_path: Path) -> None:
    """With the exit code of what was not done."""
    async with shell(tmp_path) as person:
        jobs, here = person.jobs, person.here
        async with together(
            here, jobs, "%edit a.txt a => one", "%edit b.txt b => x\n%edit a.txt one => two"
        ) as (
            one,
            two,
        ):
            pass
        run_id = jobs.get(one.job_id).run_id
        rows = await resolve(person, "accept", code=1)
        assert rows[:2] == [f"{run_id} is not accepted.", "1 conflict:"]
        assert rows[2] == f"  overlap   a.txt  {one.job_id} and {two.job_id}"
        shown = await resolve(person, "show")
        start = shown.index("a.txt")
        assert shown[start + 1] == f"  {one.job_id}:"
        assert {"  │ -a", "  │ +one", "  │ +two"} <= set(shown[start:])
        assert "  1 place is in dispute:" in shown
        assert {"  │ <<<<<<< " + one.job_id, "  │ ||||||| before", "  │ >>>>>>> " + two.job_id} <= set(shown)

        back = await resolve(person, "rollback")
        assert back[:3] == [f"{run_id} was rolled back.", "  a.txt", "  b.txt"]
        assert (here.work / "a.txt").read_text() == "a\n"
        undone = await resolve(person, "undo")
        assert undone == [f"{run_id} has its rollback undone.", "  a.txt", "  b.txt"]
        assert (here.work / "a.txt").read_text() == "two\n"

        (here.work / "a.txt").write_text("mine\n")
        refused = await resolve(person, "rollback", code=1)
        assert refused[0] == f"{run_id} was not rolled back, and nothing was written."
        assert refused[1].startswith("  a.txt: ")
        assert (here.work / "a.txt").read_text() == "mine\n"
        (here.work / "a.txt").write_text("two\n")

        again = await resolve(person, "rerun")
        assert again[-2].startswith(f"{one.job_id} runs again as job-")
        await here.ended(jobs, *jobs.unfinished())
        (accepted,) = await resolve(person, "accept")
        assert accepted.endswith(" is accepted: what its jobs changed stays.")


async def test_a_conflict_that_was_merged_by_hand_is_named_and_accepted(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        jobs, here = person.jobs, person.here
        async with together(here, jobs, "%edit a.txt a => one", "%edit a.txt one => two") as (one, _):
            pass
        wrong = await person.run("resolve", "accept", "-C", str(here.work), "--resolved", "b.txt")
        assert (wrong.code, wrong.err) == (2, "laneway: b.txt is not in conflict in this run.\n")
        answer = await person.data("resolve", "accept", "-C", str(here.work), "--resolved", "a.txt")
        run_id = jobs.get(one.job_id).run_id
        assert answer == {"run": run_id, "accepted": True}
        for action, what in (("rollback", "roll back"), ("accept", "accept")):
            late = await person.run("resolve", action, "-C", str(here.work))
            assert late.code == 2
            assert f"nothing to {what}. Its last run, {run_id}, is accepted.\n" in late.err


async def test_a_run_is_shown_without_a_verb_and_paths_are_named_from_where_one_is(tmp_path: Path) -> None:
    """As in git: `--json`, `-C`, a part of the run's id; and what no job has changed is said, not ignored."""
    async with shell(tmp_path) as person:
        jobs, here = person.jobs, person.here
        job = spawn(jobs, writing("%patch sub/new.txt 1\n%say Done."))
        await here.ended(jobs, job)
        run_id, work = jobs.get(job.job_id).run_id, str(here.work)
        rows = await resolve(person, "show")
        for words in (("-C", work), (run_id,), (run_id[4:12],), ("show", run_id[-6:])):
            assert (await person.out("resolve", *words)).splitlines() == rows
        assert (await person.data("resolve", "-C", work))["run"] == run_id
        assert job.job_id in await person.out("list", "--run", run_id[-8:])
        for path in ("sub/new.txt", "./sub/../sub/new.txt", str(here.work / "sub" / "new.txt")):
            assert "  │ +1" in await resolve(person, "show", "--path", path)
        ran = await person.run("resolve", "show", "-C", str(here.work / "sub"), "--path", "new.txt")
        assert "  │ +1" in ran.out.splitlines()
        for action, flag in (("show", "--path"), ("rollback", "--anyway")):
            wrong = await person.run("resolve", action, "-C", work, flag, "../sub/new.txt")
            told = "laneway: ../sub/new.txt was changed by no job of this run.\n"
            assert (wrong.code, wrong.err) == (2, told)
        assert (here.work / "sub" / "new.txt").exists()
        mistyped = await person.run("resolve", "acept")
        assert (mistyped.code, "invalid choice: 'acept'" in mistyped.err) == (2, True)


async def test_outside_of_a_repository_and_without_a_run_a_sentence_says_so(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        nowhere = await person.run("resolve", "-C", str(tmp_path))
        assert (nowhere.code, "is not in a git repository" in nowhere.err) == (2, True)
        nothing = await person.run("resolve", "show", "-C", str(person.here.work))
        assert (nothing.code, "has no open run: there is nothing to show." in nothing.err) == (2, True)


def test_of_a_merged_text_only_what_is_in_dispute_is_shown() -> None:
    """With two lines around it, and a mark where something is left out."""
    merged = "\n".join(
        [*"abcdef", "<<<<<<< 1", "x", "||||||| before", "y", "=======", "z", ">>>>>>> 2", *"ghijkl"]
    )
    shown = disputes(f"{merged}\n{merged}")
    assert shown[:5] == ["e", "f", "<<<<<<< 1", "x", "||||||| before"]
    assert shown[9:12] == ["g", "h", "…"]
    assert len(shown) == 23


def test_no_path_and_no_line_of_a_file_moves_the_cursor() -> None:
    diff = {
        "path": "a\x1b[2J\nb",
        "jobs": ["job-1", "job-2"],
        "one": "--- x\n+++ y\n@@ -1 +1 @@\n-a\x1b[31m\n+b\u202e",
        "merged": "<<<<<<< \x1b[0m\n>>>>>>> ",
        "conflicts": 1,
    }
    rows = list(diff_rows(diff, PLAIN, 40))
    assert all(row.isprintable() for row in rows)
    assert "  │ +b\\u202e" in rows
    assert "  job-2 changed nothing that is left." in rows


# ── gc ─────────────────────────────────────────────────────────────────────


@pytest.mark.covers("J-tools.10")
async def test_old_jobs_are_shown_and_removed_on_request(tmp_path: Path) -> None:
    """By default nothing is old; a run that is open stays, and it is said why."""
    async with shell(tmp_path) as person:
        jobs, here = person.jobs, person.here
        read, write = spawn(jobs, reading("%say one")), spawn(jobs, writing("%patch a.txt x"))
        _, ended = await here.ended(jobs, read, write)
        assert await person.out("gc") == "There is nothing to remove.\n"
        dry = (await person.out("gc", "--older-than", "0", "--dry-run")).splitlines()
        assert dry[1].startswith(f"{read.job_id}  succeeded  read")
        assert dry[2:] == [
            "1 job, 0 runs would be removed.",
            f"1 old job of {ended.run_id} stays: it is open; see `laneway jobs resolve`.",
        ]
        done = (await person.out("gc", "--older-than", "0d")).splitlines()
        assert done[0].startswith("1 job and 0 runs removed: ")
        assert (await person.run("status", read.job_id)).code == 2
        await resolve(person, "accept")
        data = await person.data("gc", "--older-than", "0")
        assert (data["dryRun"], data["jobs"], data["trees"]) == (False, [write.job_id], 1)
        assert data["freedBytes"] > 0


async def test_at_a_terminal_somebody_is_asked_first(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        job = spawn(person.jobs, reading("%say one"))
        await person.here.ended(person.jobs, job)
        words = ("jobs", "gc", "--older-than", "0")
        async with in_terminal(*words, env=person.env, cwd=tmp_path) as there:
            await there.wait_for("y or n; Enter means no")
            there.type("n\r")
            assert (await there.wait_end()).code == 0
            assert "Nothing was removed." in there.text
        assert person.jobs.get(job.job_id).has_ended
        async with in_terminal(*words, env=person.env, cwd=tmp_path) as there:
            await there.wait_for("y or n; Enter means no")
            there.type("y\r")
            assert (await there.wait_end()).code == 0
            assert "1 job and 0 runs removed" in there.text
