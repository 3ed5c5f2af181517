"""A write job that works apart from the user's tree: its own view of it, and the merge when it has succeeded.

Joins `laneway.jobs.isolation` to the runs of the tree. Used by the supervisor, and by whoever ends a lost
job. Blocking.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from laneway.base.counting import counted
from laneway.base.errors import LanewayError
from laneway.jobs.attribution import EditWindow
from laneway.jobs.isolation.edits import Edits
from laneway.jobs.isolation.isolated import Isolated, as_original, isolated
from laneway.jobs.isolation.overlay import failure, was_not_started
from laneway.jobs.model import Job, JobFailure, JobSpec
from laneway.jobs.runs import TreeRuns
from laneway.jobs.snapshots.model import Snapshot

log = logging.getLogger(__name__)


class ApartEnd(msgspec.Struct, frozen=True):
    """How the work apart ended."""

    failure: JobFailure | None = None
    """Why it was not merged."""
    windows: tuple[EditWindow, ...] = ()
    """Of the merge, as evidence."""
    warnings: tuple[str, ...] = ()
    breaches: tuple[str, ...] = ()


class ApartWork:
    """One job's own view of the work tree."""

    def __init__(self, runs: TreeRuns, job: Job, spec: JobSpec, work: Path) -> None:
        assert spec.isolation != "shared"
        self._runs = runs
        self._job = job
        self._isolated: Isolated = isolated(spec.isolation, Path(runs.tree), work)
        self._baseline: Snapshot | None = None
        self.warnings: tuple[str, ...] = ()
        """What of the tree the worker does not have."""

    def begin(self, baseline: Snapshot) -> None:
        self._baseline = baseline
        missing = self._isolated.begin(self._runs.shadow, baseline)
        if missing:
            named = ", ".join(each.path for each in missing[:5])
            what = counted(len(missing), "path of the tree was", "paths of the tree were")
            self.warnings = (f"{what} not there for the worker: {named}.",)

    def begin_again(self) -> bool:
        """With the tree as it was, without what a failed attempt has edited; whether that could be done."""
        assert self._baseline is not None
        try:
            self.begin(self._baseline)
        except (LanewayError, OSError) as problem:
            log.warning("The work apart of job %s cannot begin again: %s", self._job.job_id, problem)
            return False
        return True

    def spec_within(self, spec: JobSpec) -> JobSpec:
        """The same work, in the folder that the worker has."""
        return msgspec.structs.replace(spec, cwd=self._isolated.place_of(spec.cwd))

    def original(self, path: str) -> str:
        """A path that the worker named, as one of the user's tree."""
        return as_original(self._isolated, path)

    def wrap(self, argv: Sequence[str], cwd: str) -> tuple[str, ...]:
        return tuple(self._isolated.wrap(argv, cwd))

    def launch_fault(self, code: int | None, stderr: str) -> str:
        """Why the worker was not started at all, if that is so: a sentence of the overlay's."""
        if self._job.isolation == "overlay" and was_not_started(code, stderr):
            return failure(stderr, self._isolated.folder)
        return ""

    def end(self, *, has_succeeded: bool) -> ApartEnd:
        """Merge what a job that succeeded has done; of any other its files stay where they are."""
        if self._baseline is None:
            return ApartEnd()
        edits: Edits = self._isolated.read(self._runs.shadow, self._baseline)
        warnings = list(self.warnings)
        if edits.left_out:
            named = ", ".join(f"{each.path} ({each.why})" for each in edits.left_out[:5])
            what = counted(len(edits.left_out), "change is", "changes are")
            warnings.append(f"{what} not merged: {named}.")
        if not has_succeeded:
            if edits.changes:
                what = counted(len(edits.changes), "change was", "changes were")
                warnings.append(f"{what} not merged: look in {edits.source}.")
            return ApartEnd(warnings=tuple(warnings), breaches=edits.git_writes)
        self._runs.rollbacks.recover()
        start = time.time()
        merged = self._runs.merges.merge(edits, self._runs.shadow, job_id=self._job.job_id)
        problem = None if merged.is_done else JobFailure("merge", merged.sentence)
        if problem is not None:
            warnings.append(f"The job's files lie in {edits.source}.")
        windows = (merged.window(start, time.time()),) if merged.paths else ()
        return ApartEnd(problem, windows, tuple(warnings), edits.git_writes)


def merge_of_lost(runs: TreeRuns, job: Job) -> tuple[EditWindow, ...]:
    """The merge of a job whose supervisor died, after one that was cut off was finished."""
    runs.merges.recover()
    merged = runs.merges.of_job(job.job_id)
    return () if merged is None else (merged.window(job.started_at, time.time()),)


def left_by_lost(runs: TreeRuns, job: Job, work: Path) -> tuple[str, ...]:
    """Where to look at what such a job has done, if it was not merged; as a warning."""
    if job.isolation == "shared":
        return ()
    source = isolated(job.isolation, Path(runs.tree), work).source
    return (f"It was not merged: what it changed lies in {source}.",) if source.is_dir() else ()
