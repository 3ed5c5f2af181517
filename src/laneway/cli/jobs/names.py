"""Finds jobs and runs by what people type: an id, or six characters of its beginning or its end."""

from __future__ import annotations

import re
from collections.abc import Iterable

from laneway.base.errors import UsageError
from laneway.base.plain import code_label, label
from laneway.cli.session_names import MIN_PART_CHARS, ambiguous, matching
from laneway.jobs.model import Job
from laneway.jobs.service import Jobs

MAX_SEARCHED = 2000
"""Jobs that are looked through for a part of an id, the newest first."""
ID_START = "job-"
RUN_START = "run-"
_RUN = re.compile(r"run-.*|[0-9a-f]{6,16}", re.DOTALL)


def find_job(jobs: Jobs, who: str) -> Job:
    """The job that is meant; a `UsageError` if there is none, or more than one."""
    exact = jobs.ledger.get(who)
    if exact is not None:
        return exact
    found = matching(who, jobs.ledger.listed(limit=MAX_SEARCHED), _ids)
    if not found:
        raise UsageError(
            f"There is no job {code_label(who)}: `laneway jobs list` shows them.{_too_short(who)}"
        )
    if len(found) > 1:
        raise ambiguous(who, ((job.job_id, label(job.title)) for job in found), "jobs")
    return found[0]


def _too_short(who: str) -> str:
    part = who.removeprefix(ID_START)
    is_short = 0 < len(part) < MIN_PART_CHARS
    return f" At least {MIN_PART_CHARS} characters of an id are needed." if is_short else ""


def find_ids(jobs: Jobs, names: Iterable[str]) -> list[str]:
    """In this order, each once."""
    return list(dict.fromkeys(find_job(jobs, who).job_id for who in names))


def looks_like_run(word: str) -> bool:
    """Whether a word can only be meant as a run."""
    return _RUN.fullmatch(word) is not None


def find_run(jobs: Jobs, who: str | None) -> str | None:
    """The id of the run that is meant, if any; the words themselves where there is none of them."""
    if who is None:
        return None
    known = {job.run_id: job.node for job in jobs.ledger.listed(limit=MAX_SEARCHED) if job.run_id}
    known |= {run.run_id: run.tree for run in jobs.runs.all_runs()}
    found = matching(who, known, lambda run_id: (run_id, run_id.removeprefix(RUN_START)))
    if len(found) > 1:
        raise ambiguous(who, ((run_id, label(known[run_id])) for run_id in found), "runs")
    return found[0] if found else who


def _ids(job: Job) -> tuple[str, ...]:
    return job.job_id, job.job_id.removeprefix(ID_START)
