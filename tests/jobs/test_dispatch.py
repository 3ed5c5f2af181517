"""The dispatcher and the ledger with many jobs: what is read when, and what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.jobs.dispatch import Dispatcher
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import Job, JobLimits, Mode, Status
from laneway.jobs.places import JobsLayout, new_job_id
from laneway.store.database import Database

LIMITS = JobLimits(read=1, write=1, total=2)


class CountingLedger(Ledger):
    """Counts how often the whole queue is read."""

    reads_of_queue = 0

    def queued(self) -> list[Job]:
        self.reads_of_queue += 1
        return super().queued()


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Database(tmp_path / "laneway.db") as database:
        yield CountingLedger(database)


def added(ledger: Ledger, mode: Mode, status: Status = "queued", tree: str = "") -> Job:
    job = Job(job_id=new_job_id(), number=0, owner="local", mode=mode, status="queued", tree=tree)
    job = ledger.add(job)
    if status != "queued":
        assert ledger.change(job.job_id, expects=("queued",), status=status)
    return job


def test_a_queue_is_not_read_while_nothing_of_it_could_start(tmp_path: Path, ledger: CountingLedger) -> None:
    """A thousand jobs that wait cost a look next to nothing; with room for one of them they are read."""
    places = JobsLayout.of(tmp_path)
    dispatcher = Dispatcher(places, ledger, LIMITS, {})
    assert dispatcher.run() == ()
    added(ledger, "read", "running")
    for _ in range(3):
        added(ledger, "read")
    assert dispatcher.run() == ()
    assert ledger.reads_of_queue == 0
    added(ledger, "write", tree=str(tmp_path))  # its folder is not there, so that it is not started either
    dispatcher.run()
    assert ledger.reads_of_queue == 1


def facts(ledger: Ledger) -> tuple[list[Mode], list[str], int]:
    return sorted(ledger.queued_modes()), sorted(ledger.queued_trees()), ledger.queued_count()


def test_the_ledger_says_of_a_queue_what_is_in_it(ledger: CountingLedger) -> None:
    """Only of queued jobs."""
    assert facts(ledger) == ([], [], 0)
    added(ledger, "write", "running", tree="/running")
    added(ledger, "read")
    added(ledger, "read")
    assert facts(ledger) == (["read"], [], 2)
    added(ledger, "write", tree="/a")
    added(ledger, "write", tree="/a")
    added(ledger, "write", tree="/b")
    assert facts(ledger) == (["read", "write"], ["/a", "/b"], len(ledger.queued()))
