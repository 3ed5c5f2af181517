"""Runs of real jobs: conflicts are found, rolled back, run again, undone, accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import JobUnknown, UsageError
from laneway.jobs.model import Job
from laneway.jobs.partial import result_of
from laneway.jobs.resolving import SHARED_NOTE, Resolution, resolve
from laneway.jobs.service import Jobs
from tests.core.support import until
from tests.jobs.stage import Stage, reading, spawn, stage, writing

SEVEN = "a\nb\nc\nd\ne\nf\ng\n"


def held(prompt: str, go: Path) -> str:
    """A job that waits for the file `go` before it ends."""
    return f"{prompt}\n%run until test -e {go}; do sleep 0.02; done\n%say Done."


@asynccontextmanager
async def together(here: Stage, jobs: Jobs, *prompts: str, **more: Any) -> AsyncIterator[list[Job]]:
    """Write jobs that run at the same time: each has done its part when the block begins."""
    go = here.state / "go"
    go.unlink(missing_ok=True)
    started: list[Job] = []
    for prompt in prompts:
        # One after the other: of two patches of one file at the same moment, either may be lost or refused.
        started.append(spawn(jobs, writing(held(prompt, go), **more)))
        await here.until(jobs, started[-1], lambda each: "until test" in each.activity)
    yield started
    go.touch()
    ended = await here.ended(jobs, *started)
    assert [job.status for job in ended] == ["succeeded"] * len(ended), here.log_of(started[0].job_id)


def asked(jobs: Jobs, action: Any, owner: str = "local", **more: Any) -> dict[str, Any]:
    return resolve(jobs, owner, Resolution(action=action, **more))


@pytest.mark.covers("004-tree.1", "004-a2.s1")
async def test_edits_of_different_files_are_accepted_together(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        async with together(here, jobs, "%patch one.txt 1", "%patch two.txt 2") as both:
            pass
        shown = asked(jobs, "show")
        assert shown["conflicts"] == []
        assert [[file["path"] for file in job["modifiedFiles"]] for job in shown["jobs"]] == [
            ["one.txt"],
            ["two.txt"],
        ]
        assert asked(jobs, "accept") == {"run": shown["run"], "accepted": True}
        assert (here.work / "one.txt").read_text().strip() == "1"
        with pytest.raises(UsageError, match="no open run"):
            asked(jobs, "accept")
        assert jobs.get(both[0].job_id).run_id == shown["run"]


@pytest.mark.covers("004-a2.4", "J-a2.11")
async def test_the_job_that_ends_first_is_not_credited_with_what_the_other_does(tmp_path: Path) -> None:
    """Although only the other one's own record, which it is still writing, shows whose edits they are."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        gate, go = here.state / "gate", here.state / "go"
        first = spawn(jobs, writing(held("%run echo 1 > mine", gate)))
        await here.until(jobs, first, lambda each: "until test" in each.activity)
        async with together(here, jobs, "%patch patched 1\n%run echo 2 > written") as (second,):
            gate.touch()
            await here.ended(jobs, first)
            found = {
                file.path: file.certainty
                for file in result_of(jobs, jobs.get(first.job_id))[0].modified_files
            }
            assert found.pop("mine") == "alone"
            assert found.keys() <= {"written"}
            assert set(found.values()) <= {"likely", "uncertain"}
        assert go.exists()
        assert {
            (file.path, file.certainty) for file in result_of(jobs, jobs.get(second.job_id))[0].modified_files
        } >= {("patched", "patch")}


@pytest.mark.covers("004-tree.3", "004-a2.5", "J-a2.3", "J-a2.14", "J-a2.19")
async def test_one_file_twice_is_a_conflict_that_is_rolled_back_run_again_and_undone(tmp_path: Path) -> None:
    """The scenario of the specification, with a person's own change in between, which nobody touches."""
    async with stage(tmp_path) as here:
        here.write(**{"b.txt": "my own, not committed\n"})
        jobs = here.jobs()
        async with together(here, jobs, "%edit a.txt a => one", "%patch other.txt 1"):
            pass
        async with together(here, jobs, "%edit a.txt one => two", "%patch third.txt 3"):
            pass
        shown = asked(jobs, "show")
        assert [(each["path"], each["kind"]) for each in shown["conflicts"]] == [("a.txt", "sequence")]
        assert "+two" in shown["diffs"][0]["other"]

        answer = asked(jobs, "rollback")
        assert (answer["ending"], answer["refused"]) == ("done", [])
        assert (here.work / "a.txt").read_text() == "a\n"
        assert (here.work / "b.txt").read_text() == "my own, not committed\n"
        assert not (here.work / "other.txt").exists()

        undone = asked(jobs, "undo")
        assert undone["ending"] == "done"
        assert (here.work / "a.txt").read_text() == "two\n"
        assert (here.work / "other.txt").exists()
        assert asked(jobs, "show")["state"] == "open"


def changed_lines(diff: str) -> list[str]:
    return [line for line in diff.splitlines()[2:] if line.startswith(("+", "-"))]


def edited_with(path: Path, text: str) -> bool:
    return text in path.read_text()


def waiting(for_file: Path, then: str) -> str:
    return f"%run until test -e {for_file}; do sleep 0.02; done\n{then}"


@pytest.mark.covers("J-a2.13", "J-a2.15")
async def test_what_two_jobs_made_of_a_file_at_once_is_shown_and_given_back_together(tmp_path: Path) -> None:
    """Both had begun before either patched it: no snapshot tells which line is whose, and none is claimed."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        edited = here.work / "a.txt"
        here.write(**{"a.txt": SEVEN})
        one, two = here.state / "one", here.state / "two"
        prompts = (waiting(one, "%edit a.txt a => one"), waiting(two, "%edit a.txt g => two"))
        async with together(here, jobs, *prompts) as both:
            for go in (one, two):
                go.touch()
                await until(partial(edited_with, edited, go.name))
        ids = [job.job_id for job in both]
        shown = asked(jobs, "show")
        assert [(each["path"], each["kind"]) for each in shown["conflicts"]] == [("a.txt", "overlap")]
        (diff,) = shown["diffs"]
        assert (diff["jobs"], "other" in diff) == (ids, False)
        assert {"+one", "+two"} <= set(diff["diff"].splitlines())
        assert shown["note"] == SHARED_NOTE
        refused = asked(jobs, "rollback", job_ids=(ids[0],))
        assert refused["refused"] == [
            {"path": "a.txt", "why": f"another job may have a part in the same change ({ids[1]})"}
        ]
        assert asked(jobs, "rollback")["ending"] == "done"
        assert edited.read_text() == SEVEN
        with pytest.raises(UsageError, match="was rolled back already"):
            asked(jobs, "rollback", run=shown["run"])


@pytest.mark.covers("004-concurrency.s", "004-a2.6", "004-a2.s2", "J-a2.13")
async def test_two_patches_of_one_file_overlap_and_are_run_again_in_sequence(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        (here.work / "a.txt").write_text(SEVEN)
        async with together(here, jobs, "%edit a.txt a => one", "%edit a.txt g => two") as (first, second):
            assert (here.work / "a.txt").read_text() == "one\nb\nc\nd\ne\nf\ntwo\n"
        (diff,) = asked(jobs, "show")["diffs"]
        assert changed_lines(diff["one"]) == ["-a", "+one"]
        assert changed_lines(diff["other"]) == ["-g", "+two"]
        assert (diff["merged"], diff.get("conflicts", 0)) == ("one\nb\nc\nd\ne\nf\ntwo\n", 0)
        refused = asked(jobs, "accept")
        assert not refused["accepted"]
        assert [(each["path"], each["kind"]) for each in refused["conflicts"]] == [("a.txt", "overlap")]
        again = asked(jobs, "rerun")
        assert again["ending"] == "done", again
        assert (here.work / "a.txt").read_text() == SEVEN
        new = [each["jobId"] for each in again["jobs"]]
        assert jobs.get(new[1]).after == new[0]
        jobs.dispatch()
        await here.ended(jobs, *new)
        assert (here.work / "a.txt").read_text() == "one\nb\nc\nd\ne\nf\ntwo\n"
        assert asked(jobs, "accept")["accepted"]
        assert jobs.get(first.job_id).status == jobs.get(second.job_id).status == "succeeded"


@pytest.mark.covers("004-a2.6", "J-a2.14")
async def test_conflicts_that_a_person_has_merged_are_no_hindrance(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        here.write(**{"a.txt": SEVEN})
        async with together(here, jobs, "%edit a.txt a => one", "%edit a.txt g => two"):
            pass
        with pytest.raises(UsageError, match="is not in conflict"):
            asked(jobs, "accept", resolved=("b.txt",))
        assert asked(jobs, "accept", resolved=("a.txt",))["accepted"]


@pytest.mark.covers("J-a2.15", "J-a2.16")
async def test_nothing_is_rolled_back_while_somebody_writes_or_what_was_edited_since(tmp_path: Path) -> None:
    """The path is named, and nothing is written; a reverse merge takes only the job's part."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        (here.work / "a.txt").write_text("a\nb\nc\nd\ne\n")
        async with together(here, jobs, "%edit a.txt a => one"):
            with pytest.raises(UsageError, match="is writing"):
                asked(jobs, "rollback")
        (here.work / "a.txt").write_text("one\nb\nc\nd\nmine\n")
        refused = asked(jobs, "rollback")
        assert (refused["ending"], [each["path"] for each in refused["refused"]]) == ("refused", ["a.txt"])
        assert (here.work / "a.txt").read_text() == "one\nb\nc\nd\nmine\n"
        merged = asked(jobs, "rollback", merge=True)
        assert (merged["ending"], merged["merged"]) == ("done", ["a.txt"])
        assert (here.work / "a.txt").read_text() == "a\nb\nc\nd\nmine\n"


async def test_what_may_not_run_again_is_not_rolled_back_for_it(tmp_path: Path) -> None:
    """Asked first; and each new job is named with the one that it stands for, whatever the order."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        first, second = (
            spawn(jobs, writing(prompt)) for prompt in ("%edit a.txt a => one", "%edit b.txt b => two")
        )
        await here.ended(jobs, first, second)
        narrow = here.jobs(max_sandbox="read-only")
        ids = (second.job_id, first.job_id, second.job_id)
        with pytest.raises(UsageError, match="Jobs may go as far as read-only"):
            asked(narrow, "rerun", job_ids=ids)
        assert (here.work / "a.txt").read_text() == "one\n"
        again = asked(jobs, "rerun", job_ids=ids)
        assert (here.work / "a.txt").read_text() == "a\n"
        titles = {jobs.get(each["was"]).title: jobs.get(each["jobId"]).title for each in again["jobs"]}
        assert titles == {job.title: job.title for job in (first, second)}
        jobs.dispatch()
        await here.ended(jobs, *(each["jobId"] for each in again["jobs"]))


async def test_a_server_that_may_only_read_writes_to_no_tree(tmp_path: Path) -> None:
    """It shows what jobs did, and gives nothing back."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = spawn(jobs, writing("%edit a.txt a => one"))
        await here.ended(jobs, job)
        reader = here.jobs(is_read_only=True)
        assert asked(reader, "show")["jobs"][0]["jobId"] == job.job_id
        for action in ("rollback", "rerun", "undo"):
            with pytest.raises(UsageError, match="--readonly"):
                asked(reader, action)
        assert (here.work / "a.txt").read_text() == "one\n"


@pytest.mark.covers("J-a2.16")
async def test_nothing_is_rolled_back_around_a_writer_in_a_repository_inside(tmp_path: Path) -> None:
    """A job in a submodule, say; nor does one start there meanwhile, beside one of the tree around it."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        done = spawn(jobs, writing("%edit a.txt a => one"))
        await here.ended(jobs, done)
        here.git("init", "--quiet", "inside")
        go = here.state / "go"
        inner = spawn(jobs, writing(held("%patch x 1", go), cwd=str(here.work / "inside")))
        await here.until(jobs, inner, lambda each: "until test" in each.activity)
        with pytest.raises(UsageError, match=f"Job {inner.job_id} is writing in"):
            asked(jobs, "rollback")
        outer = spawn(jobs, writing("%patch y 1"))
        assert jobs.get(outer.job_id).status == "queued"
        go.touch()
        await here.ended(jobs, inner, outer)
        claims = {
            job.job_id: [file.path for file in result_of(jobs, jobs.get(job.job_id))[0].modified_files]
            for job in (inner, outer)
        }
        assert claims == {inner.job_id: ["x"], outer.job_id: ["y"]}
        assert asked(jobs, "rollback")["ending"] == "done"
        assert (here.work / "inside" / "x").exists()


@pytest.mark.covers("J-a2.1", "J-a2.3")
async def test_an_accepted_run_can_be_rolled_back_and_the_next_one_has_its_own_baseline(
    tmp_path: Path,
) -> None:
    """A tree has at most one open run; a run that is named may be closed."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        first = spawn(jobs, writing("%edit a.txt a => one"))
        await here.ended(jobs, first)
        run = jobs.get(first.job_id).run_id
        assert asked(jobs, "accept", run=run)["accepted"]
        second = spawn(jobs, writing("%edit b.txt b => two"))
        await here.ended(jobs, second)
        assert jobs.get(second.job_id).run_id != run
        assert asked(jobs, "show")["run"] == jobs.get(second.job_id).run_id
        rolled = asked(jobs, "rollback", run=run)
        assert (rolled["ending"], rolled["paths"]) == ("done", ["a.txt"])
        assert (here.work / "b.txt").read_text() == "two\n"


@pytest.mark.covers("J-tools.19")
async def test_nobody_resolves_the_jobs_of_another_caller(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = spawn(jobs, writing("%patch x 1"), owner="http:ann")
        await here.ended(jobs, job)
        for action in ("show", "accept", "rollback"):
            with pytest.raises(JobUnknown):
                asked(jobs, action, owner="http:bob")
        assert asked(jobs, "show", owner="http:ann")["jobs"][0]["jobId"] == job.job_id
        read = spawn(jobs, reading("%say x"))
        await here.ended(jobs, read)
        with pytest.raises(UsageError, match="none of run"):
            asked(jobs, "rollback", job_ids=(read.job_id,))
