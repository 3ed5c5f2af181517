"""What a machine answers to others, with real jobs; no transport."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import BinaryError, JobUnknown, LanewayError, UsageError
from laneway.jobs.nodes.messages import PROTOCOL, error_of, fault_of
from laneway.jobs.nodes.served import Served
from laneway.jobs.places import new_job_id
from laneway.jobs.tools import JobTools
from tests.jobs.stage import Stage, stage


def served(here: Stage, **more: Any) -> Served:
    jobs = here.jobs()
    return Served(JobTools(lambda: jobs, LoopClock()), {"site": here.work}, LoopClock(), **more)


def order(job_id: str, prompt: str, **more: Any) -> dict[str, Any]:
    request = {"prompt": prompt, **more.pop("request", {})}
    return {"jobId": job_id, "repository": "site", "path": "", "request": request, **more}


async def ended(there: Served, job_id: str, status: str = "queued") -> dict[str, Any]:
    while True:
        answer = await there.handle("watch", {"jobs": {job_id: status}, "timeoutMs": 30_000})
        (job,) = answer["jobs"]
        status = job["status"]
        if "endedAgoS" in job:
            return dict(job)


async def test_a_spawn_that_comes_twice_starts_one_job(tmp_path: Path) -> None:
    """Also when the job has ended meanwhile, and leaves nothing of the spawner's behind."""
    async with stage(tmp_path) as here:
        there, job_id = served(here), new_job_id()
        for _ in range(2):
            first = await there.handle("spawn", order(job_id, "%say Once."))
            assert [job["jobId"] for job in first["jobs"]] == [job_id]
        job = await ended(there, job_id)
        assert job["status"] == "succeeded"
        again = await served(here).handle("spawn", order(job_id, "%say Once."))
        assert again["jobs"][0]["status"] == "succeeded"
        assert len(here.jobs().ledger.listed()) == 1
        assert not here.places.job(job_id).environment.exists()
        assert (await there.handle("result", {"jobId": job_id}))["lastMessage"] == "Once."


async def test_a_spawn_with_a_cancel_leaves_a_cancelled_job_that_no_late_copy_starts(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        there, job_id = served(here), new_job_id()
        answer = await there.handle("spawn", order(job_id, "%say Never.", cancel="soft"))
        assert answer["jobs"][0]["status"] == "cancelled"
        late = await there.handle("spawn", order(job_id, "%say Never."))
        assert late["jobs"][0]["status"] == "cancelled"
        assert here.requests == []


async def test_a_follow_up_that_comes_twice_is_one_job(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        there, first, second = served(here), new_job_id(), new_job_id()
        await there.handle("spawn", order(first, "%say One."))
        for _ in range(2):
            await there.handle("send", {"jobId": second, "earlier": first, "prompt": "%say Two."})
        assert (await ended(there, second))["status"] == "succeeded"
        assert len(here.jobs().ledger.listed()) == 2


async def test_a_watch_is_answered_by_news_and_by_the_next_watch_of_the_same_caller(tmp_path: Path) -> None:
    """A change of status is news at once; so is a job that is not there."""
    async with stage(tmp_path) as here:
        there, job_id = served(here), new_job_id()
        missing = await there.handle("watch", {"jobs": {job_id: "queued"}, "timeoutMs": 60_000})
        assert (list(missing["jobs"]), list(missing["unknown"])) == ([], [job_id])
        await there.handle("spawn", order(job_id, "%say Hello."))
        job = await ended(there, job_id)
        known = {"jobs": {job_id: job["status"]}, "timeoutMs": 200_000, "watcher": "me"}
        first = asyncio.ensure_future(there.handle("watch", known))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(there.handle("watch", known))
        assert (await first)["jobs"][0]["status"] == "succeeded"
        assert not second.done()
        second.cancel()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"repository": "shop"}, "it has no repository shop (its jobs.repositories: site)"),
        ({"path": "../home"}, "../home is no path in the repository site."),
        ({"path": "/etc"}, "/etc is no path in the repository site."),
        ({"path": "none"}, "There is no folder"),
        ({"jobId": "job-1"}, "job-1 is not the id of a job."),
        ({"request": {"prompt": " "}}, "The prompt is empty"),
        ({"request": {"prompt": "x", "sandbox": "danger-full-access"}}, "Jobs may go as far as"),
        ({"request": {"prompt": 3}}, "request.prompt is not of the form"),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_a_spawn_that_cannot_be_is_one_sentence_and_starts_nothing(
    tmp_path: Path, changed: dict[str, Any], sentence: str
) -> None:
    async with stage(tmp_path) as here:
        there = served(here)
        with pytest.raises(UsageError, match=r"^[^\n]*$") as refused:
            await there.handle("spawn", {**order(new_job_id(), "%say x"), **changed})
        assert sentence in str(refused.value)
        assert here.jobs().ledger.listed() == []


async def test_a_machine_says_who_it_is_and_what_it_has_room_for(tmp_path: Path) -> None:
    """Its id stays; without a Codex it can be looked at, and starts nothing."""
    async with stage(tmp_path) as here:

        def none() -> None:
            raise BinaryError("There is no Codex.")

        there = served(here, check_codex=none)
        hello = await there.handle("hello", {})
        assert (hello["protocol"], list(hello["repositories"])) == (PROTOCOL, ["site"])
        assert hello["free"] == {"read": 8, "write": 2}
        assert hello["home"] == (await served(here).handle("hello", {}))["home"] != ""
        with pytest.raises(BinaryError):
            await there.handle("spawn", order(new_job_id(), "%say x"))
        with pytest.raises(UsageError, match="no call dance"):
            await there.handle("dance", {})
        with pytest.raises(UsageError, match="has no argument extra"):
            await there.handle("result", {"jobId": new_job_id(), "extra": 1})
        with pytest.raises(JobUnknown):
            await there.handle("result", {"jobId": new_job_id()})


def test_an_error_arrives_as_what_it_was() -> None:
    """With the machine's name before sentences; whatever else arrives is an error, too."""

    def over(error: LanewayError) -> LanewayError:
        return error_of(msgspec.to_builtins(fault_of(error)), "gpu1")

    assert str(over(UsageError("No."))) == "gpu1: No."
    assert isinstance(over(UsageError("No.")), UsageError)
    unknown = over(JobUnknown("job-1"))
    assert isinstance(unknown, JobUnknown)
    assert unknown.job_id == "job-1"
    assert type(error_of({"kind": "x", "text": "a\nb\x1b[0m"}, "gpu1")) is LanewayError
    assert "\n" not in str(error_of({"kind": "x", "text": "a\nb"}, "gpu1"))
    assert isinstance(error_of([1], "gpu1"), LanewayError)
