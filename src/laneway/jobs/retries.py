"""Gives back what a failed attempt of a job has edited, so that the next one begins where it began.

The job's edits up to now lie between two borders of the run, like those of a job of its own. Either all of
them are certain enough to be given back, and are, or nothing is written. Used by the supervisor. Blocking.
"""

from __future__ import annotations

import logging

from laneway.base.errors import LanewayError
from laneway.jobs.attribution import JobTraces
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import Job
from laneway.jobs.places import JobsLayout
from laneway.jobs.quiet_tree import quiet_tree
from laneway.jobs.rollback.wanted import wanted
from laneway.jobs.runs import TreeRuns

log = logging.getLogger(__name__)


def give_back(
    places: JobsLayout, ledger: Ledger, runs: TreeRuns, job: Job, run_id: str, shown: JobTraces
) -> bool:
    """Whether the tree is as the attempt found it; no process of the attempt is left by now."""
    try:
        with quiet_tree(places, ledger, runs, but_for=job.job_id):
            is_done = _give_back(runs, job, run_id, shown)
    except (LanewayError, OSError) as problem:
        log.warning("The edits of job %s are not given back: %s", job.job_id, problem)
        return False
    if is_done:
        runs.go_on(job, run_id)
    return is_done


def _give_back(runs: TreeRuns, job: Job, run_id: str, shown: JobTraces) -> bool:
    judged = runs.end(job, run_id, shown)
    asked = wanted(judged.credits.claims, (job.job_id,))
    if asked.refused or asked.left:
        return False
    folders = runs.shadow.folders(runs.baseline(judged.run))
    outcome = runs.rollbacks.roll_back(
        asked.returns,
        runs.shadow,
        folders,
        jobs=(job.job_id,),
        attempt_borders=runs.border_count(run_id),
    )
    return outcome.ending == "done" and not outcome.refused
