"""Ends jobs whose supervisor and guardian are gone: whoever looks does it, holding the job's own lock.

First what still carries the job's mark is killed, then the end is written: the one that the supervisor had
already put into the event log, else `lost`. Everything may be done again: a looker that is killed is
followed by another. The log of a job that ended on a full disk gets its end when it is read again. Blocking.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from laneway.base.errors import LanewayError
from laneway.jobs.apart import left_by_lost, merge_of_lost
from laneway.jobs.attribution import JobTraces
from laneway.jobs.dispatch import ring
from laneway.jobs.event_log import FINAL, EventWriter, last_event
from laneway.jobs.evidence import windows_in
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import ENDED, Job, JobFailure, Result, Status
from laneway.jobs.places import JobPlaces, JobsLayout
from laneway.jobs.processes import end_marked
from laneway.jobs.run_ledger import RunLedger
from laneway.jobs.runs import TreeRuns
from laneway.jobs.slots import held
from laneway.store.files import FILE_MODE, write_whole

log = logging.getLogger(__name__)

MAX_FALSE_STARTS = 3
"""Of one job. With more something is wrong with it, or with this machine."""
LOST = JobFailure(
    "lost", "Its supervisor and its guardian were killed, or the machine was; how far it got is unknown."
)


def end_lost(places: JobsLayout, ledger: Ledger, job: Job) -> bool:
    """End this job if nobody runs it any more; whether it has ended by that."""
    files = places.job(job.job_id)
    with held(files.lock) as is_ours:
        if not is_ours:
            return False  # its supervisor lives, or another looker ends it
        current = ledger.get(job.job_id)
        if current is None or current.has_ended or current.status == "queued":
            return False
        end_marked(job.job_id)
        final = last_event(files.events) if files.events.exists() else None
        if final is not None and final.type == FINAL:
            _finish(ledger, current, final.content)
        elif _may_begin_again(files) and ledger.change(
            job.job_id, expects=("starting",), status="queued", started_at=0.0
        ):
            ring(places)
            return False
        else:
            _end(places, ledger, current)
        files.environment.unlink(missing_ok=True)
    ring(places)
    return True


def complete_log(places: JobsLayout, job: Job) -> bool:
    """Append `final` to the log of an ended job whose supervisor could not; whether it is there now."""
    files = places.job(job.job_id)
    content: dict[str, object] = {"status": job.status}
    if job.failure is not None:
        content |= {"kind": job.failure.kind, "error": job.failure.text}
    if job.is_inconsistent:
        content["isInconsistent"] = True
    try:
        with held(files.lock) as is_ours:
            if is_ours:
                with EventWriter(files.events) as events:
                    events.append(FINAL, content)
            return is_ours
    except LanewayError as problem:
        log.info("The log of job %s still has no end: %s", job.job_id, problem)
        return False


def _may_begin_again(files: JobPlaces) -> bool:
    """Whether its supervisor was killed, with the dispatcher as a rule, before it did or said anything.

    Then nothing of it is left, and the job is back in the queue as if it had never been chosen; some times.
    """
    if files.events.exists() or not files.environment.exists() or _size(files.supervisor_log):
        return False
    fd = os.open(files.false_starts, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
    try:
        os.write(fd, b".")
    finally:
        os.close(fd)
    return _size(files.false_starts) <= MAX_FALSE_STARTS


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _finish(ledger: Ledger, job: Job, content: object) -> None:
    """Write into the ledger what the supervisor had written into the log when it was killed."""
    status: Status = "lost"
    failure: JobFailure | None = LOST
    if isinstance(content, dict) and content.get("status") in ENDED:
        status = content["status"]
        failure = None
        if status != "succeeded":
            failure = JobFailure(str(content.get("kind") or "exit"), str(content.get("error") or ""))
    is_inconsistent = isinstance(content, dict) and bool(content.get("isInconsistent"))
    ledger.end(job.job_id, status, failure, is_inconsistent=is_inconsistent)


def _end(places: JobsLayout, ledger: Ledger, job: Job) -> None:
    files = places.job(job.job_id)
    result = Result(failure=LOST)
    if job.mode == "write" and job.run_id:
        result = _with_edits(places, ledger, job, result)
    try:
        write_whole(files.result, msgspec.json.encode(result))
        with EventWriter(files.events) as events:
            events.append(FINAL, {"status": "lost", "kind": LOST.kind, "error": LOST.text})
    except LanewayError as problem:
        # Something else lies in their place: no job is unfinished for ever because of that.
        log.warning("The end of the lost job %s is in the ledger only: %s", job.job_id, problem)
    ledger.end(job.job_id, "lost", LOST, is_inconsistent=job.mode == "write")


def _with_edits(places: JobsLayout, ledger: Ledger, job: Job, result: Result) -> Result:
    """Take the border at which it ended."""
    run = RunLedger(ledger).get(job.run_id)
    runs = TreeRuns(places, ledger, job.tree)
    try:
        if run is None:
            return result
        if not runs.is_active(run, job.job_id):  # its last border was taken before it was killed
            return msgspec.structs.replace(result, modified_files=runs.judge(run).modified(job.job_id))
        if job.isolation == "shared":
            windows = windows_in(places.job(job.job_id).events, job.job_id, job.tree)
        else:
            windows = merge_of_lost(runs, job)
            if not windows:
                left = left_by_lost(runs, job, places.job(job.job_id).work)
                result = msgspec.structs.replace(result, warnings=left)
        judged = runs.end(job, job.run_id, JobTraces(windows=windows, scope=job.scope))
    except (LanewayError, OSError) as problem:
        log.warning("The edits of the lost job %s are not known: %s", job.job_id, problem)
        return result
    return msgspec.structs.replace(result, modified_files=judged.modified(job.job_id))
