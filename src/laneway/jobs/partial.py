"""Results of jobs, also of those that still run: from the result file, else from the event log. Blocking."""

from __future__ import annotations

import msgspec

from laneway.base.errors import LanewayError
from laneway.jobs.evidence import windows_in
from laneway.jobs.model import Conflict, Job, JobUsage, ModifiedFile, Result
from laneway.jobs.runs import Judged, TreeRuns
from laneway.jobs.service import Jobs


def result_of(jobs: Jobs, job: Job) -> tuple[Result, tuple[Conflict, ...]]:
    """What the job has produced so far, and the conflicts of its run that it has a part in."""
    judged = _judged(jobs, job)
    result = jobs.result(job)
    if result is None:
        result = _so_far(jobs, job)
    if judged is not None and job.has_ended:
        # Whose edits they are is known better once the jobs that ran beside it have ended, too.
        found = judged.differences(job.job_id)
        result = msgspec.structs.replace(
            result,
            modified_files=judged.modified(job.job_id),
            only_reported=found.only_reported,
            not_reported=found.not_reported,
            outside_scope=found.outside_scope,
        )
    conflicts = judged.conflicts if judged is not None else ()
    return result, tuple(conflict for conflict in conflicts if job.job_id in conflict.jobs)


def _judged(jobs: Jobs, job: Job) -> Judged | None:
    run = jobs.runs.get(job.run_id) if job.run_id else None
    if run is None:
        return None
    try:
        return TreeRuns(jobs.places, jobs.ledger, run.tree, jobs.defaults.codex_home).judge(run)
    except LanewayError:
        return None  # the tree is gone, or is none any more


def _so_far(jobs: Jobs, job: Job) -> Result:
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
