"""Results of jobs, also of those that still run: from the result file, else from the event log. Blocking."""

from __future__ import annotations

from laneway.base.errors import LanewayError
from laneway.jobs.evidence import windows_in
from laneway.jobs.model import Conflict, Job, JobUsage, ModifiedFile, Result
from laneway.jobs.runs import TreeRuns
from laneway.jobs.service import Jobs


def result_of(jobs: Jobs, job: Job) -> Result:
    """What the job has produced so far."""
    result = jobs.result(job)
    if result is not None:
        return result
    patched: dict[str, None] = {}
    if job.tree:
        windows = windows_in(jobs.places.job(job.job_id).events, job.job_id, job.tree)
        patched = dict.fromkeys(path for window in windows for path in window.paths)
    return Result(
        last_message=_last_message(jobs, job),
        modified_files=tuple(ModifiedFile(path=path, certainty="patch") for path in patched),
        usage=JobUsage(total_tokens=job.tokens),
        failure=job.failure,
    )


def conflicts_of(jobs: Jobs, job: Job) -> tuple[Conflict, ...]:
    """Those of its run that the job has a part in."""
    run = jobs.runs.get(job.run_id) if job.run_id else None
    if run is None:
        return ()
    try:
        judged = TreeRuns(jobs.places, jobs.ledger, run.tree).judge(run)
    except LanewayError:
        return ()  # the tree is gone, or is none any more
    return tuple(conflict for conflict in judged.conflicts if job.job_id in conflict.jobs)


def _last_message(jobs: Jobs, job: Job) -> str:
    text, cursor = "", None
    while True:
        page = jobs.events(job, cursor, kinds=("message",), is_full=True)
        for event in page.events:
            content = event["content"]
            text = str(content.get("text", "")) if isinstance(content, dict) else text
        if page.is_at_end:
            return text
        cursor = page.next_cursor
