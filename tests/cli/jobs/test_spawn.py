"""`laneway jobs spawn` and `send`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.jobs.support import shell
from tests.jobs.stage import reading, spawn


@pytest.mark.covers("004-tools.1", "J-tools.2")
async def test_a_job_is_started_and_its_id_printed(tmp_path: Path) -> None:
    """Every flag reaches the job; it runs on when the command has ended."""
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object"}')
    async with shell(tmp_path) as person:
        flags = (
            *("-s", "workspace-write", "-m", "gpt-5.5", "--effort", "low", "--output-schema", str(schema)),
            *("--timeout", "30m", "--stall", "90s", "--retries", "2", "--token-budget", "1500k"),
            *("--scope", "src/**", "--scope", "a.txt", "--overlap", "allow", "--isolation", "worktree"),
            *("--require-clean", "--priority", "-3", "--tag", "one", "--tag", "two"),
        )
        job = await person.spawn('%say {"ok": true}', *flags)
        spec = person.jobs.spec(job)
        assert (spec.cwd, spec.sandbox, spec.model, spec.effort) == (
            str(person.here.work),
            "workspace-write",
            "gpt-5.5",
            "low",
        )
        assert (spec.timeout_s, spec.stall_s, spec.retries, spec.token_budget) == (1800, 90, 2, 1_500_000)
        assert (spec.output_schema, spec.require_clean) == ({"type": "object"}, True)
        assert (job.scope, job.overlaps, job.isolation) == (("src/**", "a.txt"), True, "worktree")
        assert (job.priority, job.tags) == (-3, ("one", "two"))
        (ended,) = await person.here.ended(person.jobs, job)
        assert ended.status == "succeeded", (ended, person.here.log_of(job.job_id))


async def test_codex_need_not_have_been_started_before(tmp_path: Path) -> None:
    """Where its home is not there yet, it makes one, as it does when people start it."""
    async with shell(tmp_path) as person:
        nowhere = dict.fromkeys(
            ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9"
        )
        words = ("spawn", "-C", str(person.here.work), "nobody answers this")
        job = person.jobs.get((await person.out(*words, CODEX_HOME="", **nowhere)).strip())
        await person.here.until(person.jobs, job, lambda each: each.thread_id)
        assert (tmp_path / ".codex").is_dir()


async def test_the_prompt_comes_from_standard_input_where_none_is_given(tmp_path: Path) -> None:
    """Or with a dash. Where one is given, the input is left to others: to a loop of the shell, for one."""
    async with shell(tmp_path) as person:
        work = ("-C", str(person.here.work))
        for words, expected in ((("-",), "%say piped"), ((), "%say piped"), (("%say given",), "%say given")):
            told = await person.out("spawn", *work, *words, stdin="%say piped")
            assert person.jobs.spec(person.jobs.get(told.strip())).prompt == expected


async def test_waiting_prints_the_result_and_says_by_the_exit_code_how_it_ended(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        work = ("-C", str(person.here.work))
        good = await person.run("spawn", *work, "--wait", "%say All \x1b[31mseen.")
        first, second, *rows = good.out.splitlines()
        assert (good.code, good.err) == (0, "")
        assert second.startswith(f"{first}  succeeded")
        assert "  │ All \\x1b[31mseen." in rows
        bad = await person.run("spawn", *work, "--wait", "--json", "%fail 400 no such thing")
        spawned, result = map(json.loads, bad.out.splitlines())
        assert (bad.code, spawned["jobId"], result["status"]) == (1, result["jobId"], "failed")
        assert "no such thing" in result["error"]["text"]


async def test_a_provider_that_wants_a_login_is_no_riddle(tmp_path: Path) -> None:
    """What to do stands below the provider's words; programs get those alone."""
    async with shell(tmp_path) as person:
        job = await person.spawn("%fail 401 Missing bearer")
        await person.here.ended(person.jobs, job)
        rows = (await person.run("result", job.job_id)).out.splitlines()
        assert "401 Unauthorized: Missing bearer" in rows[1]
        assert rows[2] == "Log in with `laneway login`, or see what `laneway doctor` says."
        other = await person.spawn("%fail 400 no 401 of mine")
        await person.here.ended(person.jobs, other)
        assert "laneway login" not in (await person.run("result", other.job_id)).out


async def test_a_rehearsal_needs_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    """Its jobs work in a repository of their own, and end with it."""
    async with shell(tmp_path) as person:
        words = ("spawn", "--rehearse", "-s", "workspace-write", "%patch new.txt one\n%say Done.")
        ran = await person.run(*words, "--wait", CODEX_HOME="")
        assert ran.code == 0, (ran.out, ran.err)
        assert "  added     new.txt  (patch)" in ran.out
        refused = await person.run(*words)
        assert (refused.code, refused.err) == (
            2,
            "laneway: A rehearsal ends with this command, and its jobs with it: add --wait.\n",
        )
        assert person.jobs.ledger.listed() == []


async def test_a_rehearsal_that_edits_a_named_folder_warns_that_it_cannot_be_rolled_back(
    tmp_path: Path,
) -> None:
    """Its records end with it; a rehearsal that only reads has nothing to warn of."""
    async with shell(tmp_path) as person:
        words = ("spawn", "--rehearse", "--wait", "-C", str(person.here.work))
        writes = await person.run(*words, "-s", "workspace-write", "%patch new.txt one", CODEX_HOME="")
        assert (writes.code, (person.here.work / "new.txt").read_text()) == (0, "one\n"), writes.err
        assert f"What this rehearsal edits in {person.here.work} stays" in writes.err
        reads = await person.run(*words, "%say Done.", CODEX_HOME="")
        assert (reads.code, "rehearsal" in reads.err) == (0, False), reads.err


@pytest.mark.covers("J-tools.20")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((" ",), "The prompt is empty: say what the job is to do."),
        (("-C", "/no/where", "x"), "There is no folder /no/where."),
        (("-s", "danger-full-access", "x"), "Jobs may go as far as workspace-write, not danger-full-access"),
        (("--scope", "a", "x"), "A read-only job has no scope: leave it out."),
        (("--output-schema", "/no/file", "x"), "There is no schema /no/file."),
        (
            ("--timeout", "1ms", "x"),
            "timeoutMs must be from 1000 to 86400000 (one second to 24 hours), not 1.",
        ),
    ],
)
async def test_bad_input_is_a_sentence_and_starts_nothing(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    async with shell(tmp_path) as person:
        ran = await person.run("spawn", *words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"laneway: {told}")
        assert person.jobs.ledger.listed() == []


async def test_arguments_that_are_no_text_are_refused_with_a_sentence(tmp_path: Path) -> None:
    """Whichever verb: names of files may be any bytes, ids and words may not."""
    odd = os.fsdecode(b"x\xff")
    async with shell(tmp_path) as person:
        for words in (
            ("spawn", odd),
            ("spawn", "--tag", odd, "x"),
            ("list", "--tag", odd),
            ("result", odd),
            ("cancel", odd),
            ("wait", odd),
            ("watch", odd),
            ("resolve", "show", odd),
        ):
            ran = await person.run(*words)
            assert (ran.code, ran.out) == (2, ""), ran
            assert ran.err == "laneway: x\\udcff is not valid UTF-8.\n"


async def test_a_wrong_flag_is_refused_with_an_example(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        for flag, value, told in (
            ("--timeout", "soon", "'soon' is not a duration such as 90s, 30m or 1h30m"),
            ("--token-budget", "0k", "'0k' is not a number of tokens such as 200000, 200k or 2M"),
            ("--priority", "high", "'high' is not a whole number"),
        ):
            ran = await person.run("spawn", flag, value, "x")
            assert (ran.code, told in ran.err) == (2, True), ran.err


@pytest.mark.covers("J-tools.16")
async def test_a_follow_up_continues_the_thread(tmp_path: Path) -> None:
    """By a part of the id."""
    async with shell(tmp_path) as person:
        first = spawn(person.jobs, reading("%say one"))
        (first,) = await person.here.ended(person.jobs, first)
        told = await person.out("send", first.job_id[-8:], "%say two", "--wait")
        assert "  │ two" in told.splitlines()
        second = person.jobs.get(told.splitlines()[0])
        assert second.thread_id == first.thread_id
        told = await person.out("send", first.job_id[-8:], "--wait", "%say three")  # behind the flag
        assert "  │ three" in told.splitlines()
        extra = await person.run("send", first.job_id, "%say four", "--wait", "%say five")
        assert (extra.code, "unrecognized arguments: %say five" in extra.err) == (2, True)


@pytest.mark.covers("004-recursion.1", "J-workers.4")
async def test_a_worker_has_no_part_in_other_jobs(tmp_path: Path) -> None:
    """Whatever it asks for."""
    async with shell(tmp_path) as person:
        for words in (("spawn", "x"), ("list",), ("cancel", "job-0123456789abcdef")):
            ran = await person.run(*words, LANEWAY_JOB="job-0123456789abcdef")
            assert (ran.code, ran.out) == (2, "")
            assert "inside a worker of a background job" in ran.err


async def test_without_a_codex_jobs_are_looked_at_and_none_is_started(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        assert (await person.run("list", LANEWAY_CODEX_BIN="/no/codex")).code == 0
        ran = await person.run("spawn", "x", LANEWAY_CODEX_BIN="/no/codex")
        assert (ran.code, "/no/codex" in ran.err) == (3, True)
