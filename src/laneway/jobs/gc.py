"""Removes ended jobs by age: their folders, their rows, runs that have none left, and snapshots nobody needs.

    plan(jobs, age_s)       what may go, and what stays although it is old, and why; changes nothing
    collect(jobs, plan)     removes it; what has changed meanwhile stays

A run goes as a whole, and only when it is closed: until then its jobs can be rolled back, and afterwards not
any more. Folders go before rows: what a killed collection has left half done, the next one finishes.
Blocking.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import LanewayError
from laneway.jobs.dispatch import GATE_S
from laneway.jobs.isolation.removal import remove
from laneway.jobs.model import Job, Run
from laneway.jobs.places import JOB_ID, JobsLayout
from laneway.jobs.runs import ROLLBACK_LOCK, TreeRuns
from laneway.jobs.service import Jobs
from laneway.jobs.slots import held
from laneway.store.files import make_folder
from laneway.store.gates import gate

log = logging.getLogger(__name__)

LEFTOVER_S = 24 * 60 * 60.0
"""A folder without a row is that of a job that is being queued, or was left by a kill: not before this."""
REMOVED = ".removed-"
"""How the name of a folder begins that is being removed."""


class StaysOpen(msgspec.Struct, frozen=True, rename="camel"):
    """An old job that stays, and why."""

    job_id: str
    run_id: str
    why: str


class GcPlan(msgspec.Struct, frozen=True):
    jobs: tuple[Job, ...] = ()
    """Those without a run, and those of the runs."""
    runs: tuple[Run, ...] = ()
    expired: tuple[Run, ...] = ()
    """Open ones among them, which are closed first."""
    stay: tuple[StaysOpen, ...] = ()
    leftovers: tuple[str, ...] = ()
    """Names of folders of jobs that are not in the ledger."""
    trees: tuple[str, ...] = ()
    """Names of folders with snapshots of work trees that have no run any more."""

    @property
    def is_empty(self) -> bool:
        return not (self.jobs or self.runs or self.leftovers or self.trees)


class Collected(msgspec.Struct, frozen=True):
    """What was removed."""

    jobs: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    trees: int = 0
    freed_bytes: int = 0
    problems: tuple[str, ...] = ()


class Chosen(msgspec.Struct, frozen=True):
    """What may go, by the ledger alone."""

    jobs: tuple[Job, ...]
    runs: tuple[Run, ...]
    stay: tuple[StaysOpen, ...]


# ── the plan ───────────────────────────────────────────────────────────────


def plan(jobs: Jobs, age_s: float) -> GcPlan:
    """What ended longer ago than this and may go."""
    before = jobs.ledger.now() - age_s
    runs = jobs.runs.all_runs()
    expired = [run for run in runs if run.state == "open" and _is_expired(jobs, run)]
    of_runs = {run.run_id: jobs.ledger.of_run(run.run_id) for run in runs}
    open_ids = {run.run_id for run in runs if run.state == "open"} - {run.run_id for run in expired}
    chosen = choose(jobs.ledger.ended_before(before), runs, of_runs, open_ids, before)
    going = {run.run_id for run in chosen.runs}
    kept_trees = {run.tree for run in runs if run.run_id not in going}
    kept_trees |= {job.tree for job in jobs.ledger.unfinished() if job.tree}
    emptied = {jobs.places.tree(run.tree).name for run in chosen.runs}
    return GcPlan(
        jobs=chosen.jobs,
        runs=chosen.runs,
        expired=tuple(run for run in expired if run.run_id in going),
        stay=chosen.stay,
        leftovers=tuple(_leftovers(jobs, min(before, jobs.ledger.now() - LEFTOVER_S))),
        trees=tuple(_trees(jobs.places, kept_trees, emptied, before)),
    )


def choose(
    ended: Iterable[Job],
    runs: Iterable[Run],
    of_runs: Mapping[str, Sequence[Job]],
    open_ids: Collection[str],
    before: float,
) -> Chosen:
    """Pure: which of the jobs that ended long ago may go, and with which runs."""
    old = {job.job_id: job for job in ended}
    known = {run.run_id for run in runs}
    going = [
        run
        for run in runs
        if run.run_id not in open_ids
        and all(job.job_id in old for job in of_runs[run.run_id])
        and (of_runs[run.run_id] or run.created_at < before)
    ]
    going_ids = {run.run_id for run in going}
    may_go, stay = [], []
    for job in old.values():
        if job.run_id in going_ids or job.run_id not in known:
            may_go.append(job)
        else:
            why = "open" if job.run_id in open_ids else "younger"
            stay.append(StaysOpen(job.job_id, job.run_id, why))
    return Chosen(tuple(may_go), tuple(going), tuple(stay))


def _is_expired(jobs: Jobs, run: Run) -> bool:
    """Also if its work tree is gone: then there is nothing to decide any more."""
    if not os.path.isdir(run.tree):
        return not any(not job.has_ended for job in jobs.ledger.of_run(run.run_id))
    return TreeRuns(jobs.places, jobs.ledger, run.tree).is_expired(run, jobs.defaults.run_expiry_s)


def _leftovers(jobs: Jobs, before: float) -> list[str]:
    names = _names(jobs.places.jobs)
    known = jobs.ledger.many([name for name in names if JOB_ID.fullmatch(name)])
    return [name for name in names if name not in known and _is_untouched(jobs.places.jobs / name, before)]


def _trees(places: JobsLayout, kept: Collection[str], emptied: Collection[str], before: float) -> list[str]:
    kept_names = {places.tree(tree).name for tree in kept}
    return [
        name
        for name in _names(places.trees)
        if name not in kept_names
        and (name in emptied or name.startswith(REMOVED) or _is_untouched(places.trees / name, before))
    ]


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _is_untouched(folder: Path, before: float) -> bool:
    """Whether neither the folder nor what is directly in it was changed since."""
    try:
        with os.scandir(folder) as entries:
            times = [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
        return max(times, default=0.0) < before and folder.stat().st_mtime < before
    except OSError:
        return False


# ── the collection ─────────────────────────────────────────────────────────


def collect(jobs: Jobs, garbage: GcPlan) -> Collected:
    """Remove what the plan names, as far as it is still so."""
    return _Collection(jobs, garbage).run()


class _Collection:
    def __init__(self, jobs: Jobs, garbage: GcPlan) -> None:
        self._jobs = jobs
        self._places = jobs.places
        self._plan = garbage
        self._removed: list[str] = []
        self._runs: list[str] = []
        self._trees = 0
        self._freed = 0
        self._problems: list[str] = []

    def run(self) -> Collected:
        runs = {run.run_id: run for run in self._plan.runs}
        with self._noting():
            self._remove_jobs([job for job in self._plan.jobs if job.run_id not in runs])
        for run in runs.values():
            with self._noting():
                self._remove_run(run, [job for job in self._plan.jobs if job.run_id == run.run_id])
        for name in self._plan.leftovers:
            with self._noting():
                self._remove_folder(self._places.jobs / name)
        for name in self._plan.trees:
            with self._noting():
                self._remove_tree(name)
        return Collected(
            tuple(self._removed), tuple(self._runs), self._trees, self._freed, tuple(self._problems)
        )

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """What cannot be removed stays, and does not keep anything else from being removed."""
        try:
            yield
        except (LanewayError, OSError) as problem:
            log.warning("Not removed: %s", problem)
            self._problems.append(str(problem))

    def _remove_jobs(self, jobs: Iterable[Job]) -> bool:
        """Folders first, then rows; whether all of them could be removed."""
        jobs = list(jobs)
        removed = [job.job_id for job in jobs if self._remove_files(job)]
        self._jobs.ledger.remove(removed)
        self._removed += removed
        return len(removed) == len(jobs)

    def _remove_files(self, job: Job) -> bool:
        files = self._places.job(job.job_id)
        if not files.folder.is_dir():
            return True
        with held(files.lock) as is_ours:
            # Else its supervisor has written the end and is not gone yet.
            if is_ours:
                self._remove_folder(files.folder)
            return is_ours

    def _remove_run(self, run: Run, members: Sequence[Job]) -> None:
        runs = TreeRuns(self._places, self._jobs.ledger, run.tree)
        make_folder(runs.folder)
        with held(runs.folder / ROLLBACK_LOCK) as is_ours:
            if not is_ours:
                return  # somebody is rolling back in this tree
            if os.path.isdir(run.tree):
                runs.rollbacks.recover()
            with runs.gate():
                if not self._is_closed(run) or len(self._jobs.ledger.of_run(run.run_id)) != len(members):
                    return
            if self._remove_jobs(members):
                self._remove_rollbacks(runs, {job.job_id for job in members})
                self._jobs.runs.remove([run.run_id])
                self._runs.append(run.run_id)

    def _is_closed(self, run: Run) -> bool:
        """After an expired one was closed. Under the gate."""
        current = self._jobs.runs.get(run.run_id)
        if current is None or current.state != "open":
            return True
        return _is_expired(self._jobs, current) and self._jobs.runs.close(run.run_id, "expired")

    def _remove_rollbacks(self, runs: TreeRuns, members: Collection[str]) -> None:
        for each in runs.rollbacks.records():
            if each.outcome is not None and set(each.journal.jobs) <= set(members):
                self._remove_folder(runs.rollbacks.folder / each.journal.rollback_id)

    def _remove_tree(self, name: str) -> None:
        folder = self._places.trees / name
        if not name.startswith(REMOVED):
            aside = self._places.trees / f"{REMOVED}{name}-{os.urandom(4).hex()}"
            # No job starts meanwhile, so none makes this folder its own.
            with gate(self._places.dispatch_lock, patience_s=GATE_S):
                if name in _used_trees(self._jobs):
                    return
                os.rename(folder, aside)
            folder = aside
        self._remove_folder(folder)
        self._trees += 1

    def _remove_folder(self, folder: Path) -> None:
        size = _size_of(folder)
        remove(folder)
        self._freed += size


def _used_trees(jobs: Jobs) -> set[str]:
    trees = {run.tree for run in jobs.runs.all_runs()}
    trees |= {job.tree for job in jobs.ledger.unfinished() if job.tree}
    return {jobs.places.tree(tree).name for tree in trees}


def _size_of(folder: Path) -> int:
    """The bytes of all files below a folder, as far as they can be seen."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return size
