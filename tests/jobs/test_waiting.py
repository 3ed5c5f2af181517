"""How long a wait for jobs lasts, and what it answers when its time is up. No job ever starts here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import JobUnknown
from laneway.core.tools import Caller
from laneway.jobs.model import Job, JobLimits
from laneway.jobs.places import JobsLayout
from laneway.jobs.requests import JobDefaults, SpawnRequest
from laneway.jobs.service import Jobs
from laneway.jobs.tools import JobTools
from laneway.jobs.waiting import ROUND_S, Until, judge
from laneway.testing.clock import HandClock

ANN = Caller(agent_id="", principal="local")
NO_ROOM = JobLimits(read=0, write=0, total=0)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    places = JobsLayout.of(tmp_path)
    defaults = JobDefaults(cwd=tmp_path, codex="codex", codex_home=str(tmp_path), work_near=places.jobs)
    opened = Jobs(places, defaults, NO_ROOM, {})
    yield opened
    opened.close()


class Wait:
    """A wait whose time passes as the test wants: by one look at the ledger after the other."""

    def __init__(self, jobs: Jobs, until: Until, **arguments: Any) -> None:
        self.clock = HandClock()
        self._looked = asyncio.Event()
        tools = JobTools(lambda: jobs, self.clock)
        self.answer = asyncio.ensure_future(
            tools.wait(until, ANN, arguments, lambda pending: self._looked.set())
        )

    async def until_looked(self) -> None:
        """It has looked, and rests; or it has its answer."""
        looked = asyncio.ensure_future(self._looked.wait())
        await asyncio.wait([looked, self.answer], return_when=asyncio.FIRST_COMPLETED)
        looked.cancel()
        self._looked.clear()

    async def to_the_end(self) -> dict[str, Any]:
        while True:
            await self.until_looked()
            if self.answer.done():
                return self.answer.result()
            self.clock.advance(ROUND_S)


@pytest.mark.covers("J-tools.11")
@pytest.mark.parametrize(
    ("more", "lasts_s"),
    [({}, 45), ({"timeoutMs": 20_000}, 20), ({"timeoutMs": 1_000_000}, 240), ({"timeoutMs": 0}, 0)],
)
@pytest.mark.parametrize("until", ["any", "all"])
async def test_a_wait_lasts_45_seconds_or_as_long_as_was_asked_for_and_240_at_most(
    jobs: Jobs, until: Until, more: dict[str, int], lasts_s: int
) -> None:
    """Then it says what has not ended, and the same cursor goes on."""
    job = jobs.spawn(SpawnRequest(prompt="x"))
    wait = Wait(jobs, until, jobIds=[job.job_id], **more)
    answer = await wait.to_the_end()
    assert (answer["ended"], answer["pending"], answer["timedOut"]) == ([], [job.job_id], True)
    assert wait.clock.now() == lasts_s


async def test_an_end_is_noticed_at_once_and_not_at_the_next_round(jobs: Jobs) -> None:
    """The bell rings: one look at a file's time is all that a waiter needs."""
    one, other = (jobs.spawn(SpawnRequest(prompt=name)) for name in "ab")
    wait = Wait(jobs, "any", jobIds=[one.job_id, other.job_id])
    await wait.until_looked()
    jobs.cancel(one.job_id)
    wait.clock.advance(0.02)
    answer = await wait.answer
    assert ([job["jobId"] for job in answer["ended"]], answer["timedOut"]) == ([one.job_id], False)
    assert wait.clock.now() < ROUND_S
    rest = Wait(jobs, "all", jobIds=[one.job_id, other.job_id], cursor=answer["nextCursor"])
    await rest.until_looked()
    assert not rest.answer.done()
    jobs.cancel(other.job_id)
    rest.clock.advance(0.02)
    assert [job["jobId"] for job in (await rest.answer)["ended"]] == [other.job_id]


async def test_without_ids_it_waits_for_what_has_not_ended_and_for_nothing_not_at_all(jobs: Jobs) -> None:
    """A job that is asked for by an unknown id is no wait."""
    over, queued = (jobs.spawn(SpawnRequest(prompt=name)) for name in "ab")
    jobs.cancel(over.job_id)
    wait = Wait(jobs, "all", timeoutMs=0)
    assert (await wait.to_the_end())["pending"] == [queued.job_id]
    jobs.cancel(queued.job_id)
    nothing = await Wait(jobs, "any").answer
    assert (nothing["ended"], nothing["pending"], nothing["timedOut"]) == ([], [], False)
    with pytest.raises(JobUnknown):
        await Wait(jobs, "any", jobIds=[queued.job_id, "job-0000000000000000"]).answer


def ended(number: int) -> Job:
    return Job(
        job_id=f"job-{number}",
        number=number,
        owner="local",
        mode="read",
        status="succeeded",
        ended_number=number,
    )


def test_what_has_ended_is_told_in_the_order_of_the_ends() -> None:
    """Whatever the order of the question; what the cursor has is not told again."""
    found = judge([ended(3), ended(1), ended(2)], None, "all")
    assert [job.ended_number for job in found.ended] == [1, 2, 3]
    later = judge([ended(4), ended(2)], judge([ended(2)], None, "any").next_cursor, "any")
    assert [job.ended_number for job in later.ended] == [4]
