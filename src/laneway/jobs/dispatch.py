"""Starts queued jobs while there is room: under one lock for all processes of the user.

Called at every spawn, end and look, and by a tick of every server. Whoever calls decides by the pure
`rules.decide`, locks the slots and the job's own file, and hands them to the new supervisor. Blocking.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping

from laneway.base.errors import LanewayError
from laneway.jobs import rules
from laneway.jobs.event_log import FINAL, EventWriter
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import Job, JobFailure, JobLimits
from laneway.jobs.places import JobsLayout
from laneway.jobs.processes import start_supervisor
from laneway.jobs.slots import Slots
from laneway.store.files import FILE_MODE, make_folder
from laneway.store.gates import gate, take_lock

log = logging.getLogger(__name__)

GATE_S = 30.0
"""To wait for another dispatcher, which starts at most ten processes."""


class Dispatcher:
    """Starts jobs of one user. `busy_trees` names the trees in which nothing may start now."""

    def __init__(
        self,
        places: JobsLayout,
        ledger: Ledger,
        limits: JobLimits,
        environment: Mapping[str, str],
        busy_trees: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._places = places
        self._ledger = ledger
        self._limits = limits
        self._environment = environment
        self._busy_trees = busy_trees
        self._slots = Slots(places.slots)

    def run(self) -> tuple[str, ...]:
        """Start what may start; the ids of the jobs that were started."""
        if not self._has_room():
            return ()
        make_folder(self._places.root)
        with gate(self._places.dispatch_lock, patience_s=GATE_S):
            decision = rules.decide(
                self._ledger.queued(), self._ledger.active(), self._limits, busy_trees=self._busy_trees()
            )
            started = [job.job_id for job in decision.start if self._start(job)]
        if started:
            ring(self._places)
        return tuple(started)

    def _has_room(self) -> bool:
        """Whether a look at the queue is worth it. Whoever makes room later looks again."""
        modes = self._ledger.queued_modes()
        return bool(modes) and rules.has_room(modes, self._ledger.active(), self._limits)

    def _start(self, job: Job) -> bool:
        # Slots that a dead job's processes still hold are not free, whatever the ledger says.
        slots = self._slots.take(job.mode, self._limits)
        if not slots:
            return False
        lock = None
        try:
            lock = take_lock(self._places.job(job.job_id).lock)
            if lock is None:
                return False  # somebody is cancelling it
            if not self._ledger.change(
                job.job_id, expects=("queued",), status="starting", started_at=self._ledger.now()
            ):
                return False
            start_supervisor(self._places, job.job_id, self._limits, lock, slots, self._environment)
        except LanewayError as problem:
            log.warning("Job %s could not be started: %s", job.job_id, problem)
            if lock is not None:
                end_unstarted(self._places, self._ledger, job, JobFailure("launch", str(problem)))
            return False
        finally:
            for fd in (*slots, *(() if lock is None else (lock,))):
                os.close(fd)
        return True


def end_unstarted(places: JobsLayout, ledger: Ledger, job: Job, failure: JobFailure) -> None:
    """End a job that has no supervisor. The caller has its lock."""
    status = rules.status_of_end(failure.kind)
    try:
        with EventWriter(places.job(job.job_id).events) as events:
            events.append(FINAL, {"status": status, "kind": failure.kind, "error": failure.text})
    except LanewayError as problem:
        log.warning("The end of job %s is in the ledger only: %s", job.job_id, problem)
    ledger.end(job.job_id, status, failure)
    places.job(job.job_id).environment.unlink(missing_ok=True)
    ring(places)


def ring(places: JobsLayout) -> None:
    """A job has changed its status: whoever waits looks again."""
    try:
        os.utime(places.bell)
    except FileNotFoundError:
        os.close(os.open(places.bell, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
