"""Further attempts: where nothing was edited, or after the attempt's own edits were rolled back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.jobs.model import Job
from laneway.jobs.service import Jobs
from tests.jobs.scripted import one_after_the_other
from tests.jobs.stage import Stage, reading, spawn, stage, writing
from tests.jobs.test_resolving import asked

EDITS = "%patch new.txt 1\n%edit a.txt a => one\n%run mkdir d; echo x > d/y; rm b.txt\n%fail 400 no"


def retried(here: Stage, jobs: Jobs, job: Job) -> list[str]:
    """Why, as the events tell it."""
    contents = [event["content"] for event in here.events(jobs, job) if event["type"] == "error"]
    return [content["message"] for content in contents if content["kind"] == "retry"]


@pytest.mark.covers("J-workers.17")
async def test_an_attempt_without_edits_is_followed_by_another_in_the_same_thread(tmp_path: Path) -> None:
    """As often as the job allows, and no more."""
    fails = one_after_the_other("%fail 400 first", "%fail 400 second", "%say Done.")
    async with stage(tmp_path, answerer=fails) as here:
        jobs = here.jobs()
        once = spawn(jobs, reading("x", retries=1))
        (ended,) = await here.ended(jobs, once)
        assert (ended.status, ended.attempt) == ("failed", 2), here.log_of(once.job_id)
        assert ended.failure is not None
        assert "second" in ended.failure.text
        assert retried(here, jobs, ended) == ["The turn failed: first."]
        threads = {request["prompt_cache_key"] for request in here.requests}
        assert threads == {ended.thread_id}


@pytest.mark.covers("004-a2.1", "J-workers.17", "J-a2.19")
async def test_edits_of_a_failed_attempt_are_given_back_before_the_next_one(tmp_path: Path) -> None:
    """It begins where the first one began, in a thread of its own, and is credited with its own edits only.

    What was in the tree before, and is not committed, stays.
    """
    second = "%run test ! -e new.txt && test ! -e d && cat a.txt b.txt mine\n%patch other.txt 2\n%say Done."
    async with stage(tmp_path, answerer=one_after_the_other(EDITS, second)) as here:
        here.write(**{"a.txt": "a\nnot committed\n", "mine": "mine\n"})
        jobs = here.jobs()
        job = spawn(jobs, writing("x", retries=1))
        (ended,) = await here.ended(jobs, job)
        assert (ended.status, ended.attempt) == ("succeeded", 2), here.log_of(job.job_id)
        (run,) = [
            event["content"]["output"]
            for event in here.events(jobs, ended)
            if event["type"] == "tool_result" and "not committed" in str(event["content"].get("output"))
        ]
        assert run == "a\nnot committed\nb\nmine\n"
        assert len({request["prompt_cache_key"] for request in here.requests}) == 2
        assert "d/y" in str(here.requests[-4]), "of the first attempt"
        assert "d/y" not in str(here.requests[-1])
        assert [(file.path, file.certainty) for file in here.result(jobs, ended).modified_files] == [
            ("other.txt", "patch")
        ]
        assert retried(here, jobs, ended) == ["The turn failed: no."]

        shown = asked(jobs, "show")
        assert [file["path"] for file in shown["jobs"][0]["modifiedFiles"]] == ["other.txt"]
        rolled = asked(jobs, "rollback")
        assert (rolled["ending"], rolled["paths"]) == ("done", ["other.txt"])
        assert asked(jobs, "undo")["paths"] == ["other.txt"]
        assert (here.work / "other.txt").exists()
        assert not (here.work / "new.txt").exists()


@pytest.mark.covers("J-workers.17")
async def test_edits_that_cannot_be_given_back_now_are_not_followed_by_another_attempt(
    tmp_path: Path,
) -> None:
    """Another job is writing in the same tree: nothing is rolled back under it."""
    go = tmp_path / "go"
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        other = spawn(jobs, writing(f"%run until test -e {go}; do sleep 0.02; done"))
        await here.until(jobs, other, lambda each: "until test" in each.activity)
        job = spawn(jobs, writing(EDITS, retries=3))
        (ended,) = await here.ended(jobs, job)
        assert (ended.status, ended.attempt) == ("failed", 1)
        assert (here.work / "new.txt").exists()
        go.touch()
        await here.ended(jobs, other)


@pytest.mark.covers("J-workers.17")
@pytest.mark.parametrize("isolation", ["overlay", "worktree"])
async def test_an_attempt_of_a_job_apart_begins_with_the_tree_as_it_was(
    tmp_path: Path, isolation: Any
) -> None:
    second = "%run test ! -e new.txt && test ! -e d && cat a.txt b.txt\n%patch other.txt 2\n%say Done."
    async with stage(tmp_path, answerer=one_after_the_other(EDITS, second)) as here:
        jobs = here.jobs()
        job = spawn(jobs, writing("x", retries=1, isolation=isolation))
        (ended,) = await here.ended(jobs, job)
        assert (ended.status, ended.attempt) == ("succeeded", 2), here.log_of(job.job_id)
        assert here.git("status", "--porcelain") == "?? other.txt\n"
        assert [file.path for file in here.result(jobs, ended).modified_files] == ["other.txt"]
