"""Jobs from the spawn to the result, with the real Codex."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import JobUnknown, UsageError
from laneway.jobs.model import JobFailure, JobLimits
from laneway.jobs.tools import TICK_S, JobTools
from laneway.testing.clock import HandClock
from laneway.wire import guardian
from laneway.wire.child import Child, Exit
from tests.core.support import until
from tests.jobs.stage import DEADLINE_S, reading, spawn, stage, writing
from tests.wire.support import linux_only


@pytest.mark.covers("004-boss.1", "004-events.1")
async def test_a_job_runs_by_itself_and_leaves_its_last_words(tmp_path: Path) -> None:
    """Events of the six types, one `final`; tokens; a thread to go on with."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = spawn(jobs, reading("%run ls\n%usage 123\n%say All seen.", tags=("x",)))
        assert job.status == "queued"
        (ended,) = await here.ended(jobs, job)
        assert (ended.status, ended.failure) == ("succeeded", None), here.log_of(job.job_id)
        result = here.result(jobs, ended)
        assert result.last_message == "All seen."
        events = here.events(jobs, ended)
        kinds = [event["type"] for event in events]
        assert {"progress", "tool_call", "tool_result", "message"} <= set(kinds)
        assert "a.txt" in str(events[kinds.index("tool_result")]["content"])
        assert ended.thread_id
        assert ended.tokens == result.usage.total_tokens > 0


@pytest.mark.covers("004-boss.3", "004-a2.4", "J-workers.6")
async def test_a_writing_job_is_credited_with_what_it_changed(tmp_path: Path) -> None:
    """By patch and by shell; nothing of the user's repository is touched."""
    async with stage(tmp_path) as here:
        before = {name: (here.work / ".git" / name).read_bytes() for name in ("HEAD", "index", "config")}
        jobs = here.jobs()
        job = spawn(jobs, writing("%patch new.txt one\n%run echo more >> a.txt\n%say Done."))
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "succeeded", (ended, here.log_of(job.job_id))
        result = here.result(jobs, ended)
        assert [(each.path, each.certainty, each.change) for each in result.modified_files] == [
            ("a.txt", "alone", "modified"),
            ("new.txt", "patch", "added"),
        ]
        assert before == {name: (here.work / ".git" / name).read_bytes() for name in before}
        assert "trust_level" not in (here.home / "config.toml").read_text()


@pytest.mark.covers("004-concurrency.1", "004-bounds.2", "J-supervision.7")
async def test_no_more_jobs_run_than_there_are_slots_and_the_queue_is_worked_off(tmp_path: Path) -> None:
    """The last one to end starts the next; nobody has to look."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(JobLimits(read=2, write=1, total=2))
        queued = [spawn(jobs, reading(f"%say {number}")) for number in range(5)]
        assert len(jobs.ledger.active()) == 2
        ended = await here.ended(jobs, *queued)
        assert [job.status for job in ended] == ["succeeded"] * 5
        assert sorted(job.ended_number for job in ended) == [1, 2, 3, 4, 5]


@pytest.mark.covers("J-supervision.7")
async def test_a_server_that_only_runs_starts_what_waits_and_ends_what_was_lost(tmp_path: Path) -> None:
    """By its tick: nobody calls a tool."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        clock = HandClock()
        job = jobs.spawn(reading("%say Done."))
        async with JobTools(lambda: here.jobs(), clock).running():
            clock.advance(TICK_S)
            await until(lambda: jobs.get(job.job_id).has_ended, DEADLINE_S)
        assert jobs.get(job.job_id).status == "succeeded"


@pytest.mark.covers("004-tools.4", "004-cancel.s1")
async def test_a_cancelled_job_says_so_and_leaves_nothing_running(tmp_path: Path) -> None:
    """Queued: at once. Running: asked to end, or killed by force."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(JobLimits(read=1, write=1, total=1))
        running = spawn(jobs, reading("%run sleep 1000"))
        queued = spawn(jobs, reading("%say never"))
        assert jobs.cancel(queued.job_id).status == "cancelled"
        await here.until(jobs, running, lambda job: "sleep" in job.activity)
        assert jobs.cancel(running.job_id).status == "cancelling"
        (ended,) = await here.ended(jobs, running)
        assert ended.status == "cancelled"
        forced = spawn(jobs, reading("%run sleep 1000"))
        await here.until(jobs, forced, lambda job: job.thread_id)
        jobs.cancel(forced.job_id, force=True)
        (ended,) = await here.ended(jobs, forced)
        assert ended.status == "cancelled"
        assert here.events(jobs, ended)[-1]["content"]["status"] == "cancelled"
        assert jobs.cancel(forced.job_id).status == "cancelled"


AGENT = """
import sys, time
from pathlib import Path
from laneway.jobs.model import JobLimits
from laneway.jobs.places import JobsLayout
from laneway.jobs.requests import JobDefaults
from laneway.jobs.service import Jobs
state, job_id = sys.argv[1:]
defaults = JobDefaults(cwd=Path("/"), work_near=Path("/"), codex="codex", codex_home="/")
jobs = Jobs(JobsLayout.of(Path(state)), defaults, JobLimits())
jobs.dispatch()
while jobs.get(job_id).status != "running":
    time.sleep(0.01)
"""
"""What an agent has started to start a job: it ends once that runs."""


@linux_only
async def test_a_job_outlives_the_agent_that_spawned_it(tmp_path: Path) -> None:
    """One whose guardian ends all that it has started, such as a Codex of ours that uses our MCP server."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = spawn(jobs, reading("%hang"))
        words = [sys.executable, "-P", "-c", AGENT, str(here.state), job.job_id]
        agent = await Child.spawn(words, on_stdout=ignore, env=here.environment, kind=guardian.AGENT)
        assert await agent.wait() == Exit(code=0), agent.stderr_tail
        jobs.look()
        assert jobs.get(job.job_id).status == "running"
        jobs.cancel(job.job_id)
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "cancelled", here.log_of(job.job_id)


def ignore(data: bytes) -> None:
    """What the agent prints is not looked at."""


@pytest.mark.covers("J-tools.16")
async def test_a_follow_up_goes_on_in_the_same_thread(tmp_path: Path) -> None:
    """Also one that was sent while the first still ran; its tokens are its own."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        first = spawn(jobs, reading("%usage 1000\n%say My name is Ann."))
        await here.ended(jobs, first)
        second = jobs.send(first.job_id, "%usage 1200\n%say Again.")
        third = jobs.send(first.job_id, "%say And again.")
        assert third.after == second.job_id
        jobs.dispatch()
        ended = await here.ended(jobs, second, third)
        assert [job.status for job in ended] == ["succeeded"] * 2, here.log_of(second.job_id)
        assert len({job.thread_id for job in [jobs.get(first.job_id), *ended]}) == 1
        assert "My name is Ann." in str(here.requests[-1])


async def test_a_follow_up_sent_before_there_is_a_thread_goes_on_in_it_all_the_same(tmp_path: Path) -> None:
    """Where there never was one, that is said, and no other thread is begun."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        first = jobs.spawn(reading("%say My name is Ann."))
        second = jobs.send(first.job_id, "%say Who am I?")
        unstarted = jobs.spawn(reading("%say never"))
        orphan = jobs.send(unstarted.job_id, "%say either")
        jobs.cancel(unstarted.job_id)
        jobs.dispatch()
        one, two, none = await here.ended(jobs, first, second, orphan)
        assert (two.status, two.thread_id) == ("succeeded", one.thread_id), here.log_of(second.job_id)
        assert "My name is Ann." in next(str(each) for each in here.requests if "Who am I?" in str(each))
        assert (none.status, none.failure) == (
            "failed",
            JobFailure("launch", f"Job {unstarted.job_id} ended before it had a thread: spawn a new one."),
        )


@pytest.mark.covers("J-tools.18")
async def test_jobs_of_somebody_else_are_unknown(tmp_path: Path) -> None:
    """The local user sees all of them."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = spawn(jobs, reading("%say x"), owner="http:ann")
        for owner in ("http:bob", "http:"):
            with pytest.raises(JobUnknown):
                jobs.get(job.job_id, owner)
            with pytest.raises(JobUnknown):
                jobs.cancel(job.job_id, owner)
        assert jobs.get(job.job_id, "http:ann") == jobs.get(job.job_id, "local")
        await here.ended(jobs, job)


@pytest.mark.covers("004-git", "J-tools.2", "J-tools.20")
async def test_bad_input_is_a_sentence_and_starts_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        outside = tmp_path / "plain"
        outside.mkdir()
        odd = os.fsencode(tmp_path) + b"/odd\xff"
        os.mkdir(odd)
        for request, words in (
            (reading(" "), "empty"),
            (reading("x" * 1_048_577), "1,048,57"),
            (reading("x", cwd="/nowhere"), "no folder"),
            (reading("x", cwd="a\0b"), "no folder"),
            (reading("x", output_schema={"type": "nonsense"}), "schema"),
            (writing("x", cwd=str(outside)), "git"),
            (writing("x", scope=("../other",)), "outside"),
            (writing("x", run="run-1"), "no open run"),
            (reading("x", isolation="overlay"), "isolation"),
            (reading("x", node="gpu1"), "no machine gpu1"),
            (reading("x", timeout_ms=5), "timeoutMs"),
            (reading("x", cwd=os.fsdecode(odd)), "not valid UTF-8"),
            (reading("x", model="\udcff"), "not valid UTF-8"),
            (reading("x", tags=("\udcff",)), "not valid UTF-8"),
            (reading("\udcff"), "not valid UTF-8"),
            (reading("x", sandbox="danger-full-access"), "workspace-write"),
        ):
            with pytest.raises(UsageError, match=words):
                jobs.spawn(request)
        with pytest.raises(UsageError, match="--readonly"):
            here.jobs(is_read_only=True).spawn(writing("x"))
        for job_id in ("job-0", "../x", "job-0000000000000000"):
            with pytest.raises(JobUnknown):
                jobs.get(job_id)
        assert jobs.ledger.listed() == []
        assert not here.places.jobs.exists()


@pytest.mark.covers("J-a2.22")
@pytest.mark.parametrize("isolation", ["overlay", "worktree"])
async def test_a_job_apart_is_merged_when_it_has_succeeded(tmp_path: Path, isolation: Any) -> None:
    """Until then the user's tree is as it was; afterwards every path is certain."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        go = here.state / "go"
        prompt = f"%patch new.txt one\n%run echo more >> a.txt\n%run until test -e {go}; do sleep 0.02; done"
        job = spawn(jobs, writing(prompt, isolation=isolation))
        await here.until(jobs, job, lambda each: "until test" in each.activity)
        assert not (here.work / "new.txt").exists()
        assert (here.work / "a.txt").read_text() == "a\n"
        (here.work / "b.txt").write_text("by a person\n")
        go.touch()
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "succeeded", (ended, here.log_of(job.job_id), here.result(jobs, ended))
        assert (here.work / "a.txt").read_text() == "a\nmore\n"
        assert (here.work / "b.txt").read_text() == "by a person\n"
        result = here.result(jobs, ended)
        assert [(each.path, each.certainty) for each in result.modified_files] == [
            ("a.txt", "overlay"),
            ("new.txt", "overlay"),
        ]


@pytest.mark.covers("J-a2.22")
async def test_a_job_apart_whose_edits_conflict_is_not_merged_at_all(tmp_path: Path) -> None:
    """Nothing is written, the paths are named, and the files can be looked at."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        go = here.state / "go"
        prompt = f"%patch new.txt one\n%edit a.txt a => mine\n%run until test -e {go}; do sleep 0.02; done"
        job = spawn(jobs, writing(prompt, isolation="worktree"))
        await here.until(jobs, job, lambda each: "until test" in each.activity)
        (here.work / "a.txt").write_text("theirs\n")
        go.touch()
        (ended,) = await here.ended(jobs, job)
        assert (ended.status, ended.failure and ended.failure.kind) == ("failed", "merge")
        assert ended.failure is not None
        assert "a.txt" in ended.failure.text
        assert (here.work / "a.txt").read_text() == "theirs\n"
        assert not (here.work / "new.txt").exists()
