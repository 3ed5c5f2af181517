"""Runs of write jobs in a work tree: baselines, borders, and what each job is credited with.

Joins the ledger, the shadow repository and the attribution. A border is taken under the tree's gate, so that
two jobs that start or end at the same time are told apart. Blocking.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec

from laneway.base.errors import FileDamaged, LanewayError, StoreError, UsageError
from laneway.base.paths import cache_home
from laneway.base.plain import code_label
from laneway.codex import locate
from laneway.jobs.attribution import (
    Credits,
    Differences,
    JobTraces,
    PathClaim,
    credit,
    differences,
    intervals_of,
    is_steady,
)
from laneway.jobs.conflicts import conflicts
from laneway.jobs.evidence import shown_so_far
from laneway.jobs.given_back import in_force, rolled_back, without_failed_attempts
from laneway.jobs.isolation.merge import Merges
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import DEFAULT_RUN_EXPIRY_S, Conflict, Job, ModifiedFile, Run
from laneway.jobs.places import JobsLayout
from laneway.jobs.rollback.rollbacks import Rollbacks
from laneway.jobs.rules import is_nested
from laneway.jobs.run_ledger import RunLedger
from laneway.jobs.shadow import Shadow
from laneway.jobs.slots import is_held
from laneway.jobs.snapshots.beside import parents_of
from laneway.jobs.snapshots.model import Change, Snapshot
from laneway.store.files import make_folder
from laneway.store.gates import gate
from laneway.wire.git import GitRun
from laneway.wire.git_view import git_view

BORDER_S = 300.0
"""To wait for the border of another job: the first snapshot of a large tree may take a minute."""

log = logging.getLogger(__name__)
_encode = msgspec.json.encode


class Judged(msgspec.Struct, frozen=True):
    """What the jobs of a run are credited with, so far."""

    run: Run
    jobs: tuple[Job, ...]
    credits: Credits
    conflicts: tuple[Conflict, ...]
    shown: Mapping[str, JobTraces]
    rolled_back: frozenset[str] = frozenset()
    """Jobs whose edits were given back, and not restored since."""

    def claims(self, job_id: str) -> tuple[PathClaim, ...]:
        return tuple(claim for claim in self.credits.claims if claim.job_id == job_id)

    def differences(self, job_id: str) -> Differences:
        return differences(self.claims(job_id), self.shown.get(job_id, JobTraces()))

    def modified(self, job_id: str) -> tuple[ModifiedFile, ...]:
        return tuple(
            ModifiedFile(path=claim.path, certainty=claim.certainty, change=_kind_of(claim))
            for claim in self.claims(job_id)
        )


class TreeRuns:
    """The runs of one work tree."""

    def __init__(self, places: JobsLayout, ledger: Ledger, tree: str, codex_home: str = "") -> None:
        """`codex_home`: of a job, if it may be another than that of this process."""
        self.tree = tree
        self._places = places
        self.folder = places.tree(tree)
        # What we and Codex keep for ourselves is no edit of a job's: a home folder may be a repository.
        codex_homes = {home for home in (codex_home, locate.codex_home(os.environ)) if home}
        ours = (places.root, places.state, cache_home(), *map(Path, codex_homes))
        self.shadow = Shadow(self.folder / "shadow", Path(tree), ours=ours)
        self.rollbacks = Rollbacks(self.folder / "rollbacks", Path(tree))
        self.merges = Merges(self.folder / "merges", Path(tree))
        self._ledger = ledger
        self._runs = RunLedger(ledger)

    @contextmanager
    def gate(self) -> Iterator[None]:
        """Nobody else takes a border or rolls back in this tree during the block."""
        make_folder(self.folder)
        with gate(self.folder / "borders.lock", patience_s=BORDER_S):
            yield

    # ── borders ────────────────────────────────────────────────────────────

    def begin(self, job: Job, *, require_clean: bool, expiry_s: float = DEFAULT_RUN_EXPIRY_S) -> Run:
        """Take the border at which a job starts; opens a run if the tree has none. `LanewayError` if not."""
        self.finish_cut_off()
        with self.gate():
            run = self._runs.open_run(self.tree)
            if run is not None and self.is_expired(run, expiry_s):
                self._runs.close(run.run_id, "expired")
                run = None
            if run is not None and not self._is_readable(run):
                self._runs.close(run.run_id, "expired")  # nothing can be said about it, nor ever rolled back
                run = None
            if job.run_id and (run is None or run.run_id != job.run_id):
                raise UsageError(f"The run {code_label(job.run_id)} was closed before this job could start.")
            active = self._active(run)
            porcelain = self._porcelain() if run is None or require_clean else ""
            if require_clean and porcelain and not active:
                raise UsageError("The work tree has uncommitted changes, and the job requires a clean one.")
            snapshot = self.shadow.snapshot(is_baseline=run is None)
            if run is None:
                run = self._runs.begin(self.tree, _text(snapshot), snapshot.head, porcelain)
            self._add_border(run, snapshot, active | {job.job_id})
            self._ledger.change(job.job_id, expects=(job.status, "starting", "cancelling"), run_id=run.run_id)
            return run

    def end(self, job: Job, run_id: str, shown: JobTraces) -> Judged:
        """Take the border at which a job ends, when all its processes are gone."""
        with self.gate():
            run = self._runs.get(run_id)
            if run is None:
                raise StoreError(f"The run {run_id} was removed while its job {job.job_id} ran.")
            active = self._active(run)
            snapshot = self.shadow.snapshot()
            self._add_border(run, snapshot, active - {job.job_id})
            self._runs.set_evidence(job.job_id, run_id, shown)
        judged = self.judge(run)
        self.shadow.keep(_changes_of(judged))
        return judged

    def go_on(self, job: Job, run_id: str) -> None:
        """Take the border at which a job that had taken that of its end works on."""
        with self.gate():
            run = self._runs.get(run_id)
            if run is None:
                raise StoreError(f"The run {run_id} was removed while its job {job.job_id} ran.")
            self._add_border(run, self.shadow.snapshot(), self._active(run) | {job.job_id})

    def finish_cut_off(self) -> None:
        """Finish a rollback and a merge whose process was killed: nobody works on what is half written."""
        self.rollbacks.recover()
        self.merges.recover()

    def add_quiet_border(self, run: Run) -> None:
        """After something else than a job has written: nobody is credited with that."""
        with self.gate():
            self._add_border(run, self.shadow.snapshot(), self._active(run))

    def last_snapshot(self, run: Run) -> Snapshot:
        """Of its last border."""
        return self._runs.borders(run.run_id)[-1].snapshot

    def baseline(self, run: Run) -> Snapshot:
        """What the run began with."""
        return self._runs.baseline(run)

    def unguarded(self, run: Run, paths: Collection[str]) -> tuple[str, ...]:
        """Those that lie where snapshots do not look, such as in an ignored folder."""
        last = self.last_snapshot(run)
        if not paths or not last.unguarded:
            return ()
        keys = {item.path for item in self.shadow.unguarded(last)}
        return tuple(sorted(path for path in paths if not keys.isdisjoint((path, *parents_of(path)))))

    def border_count(self, run_id: str) -> int:
        return len(self._runs.borders(run_id))

    def _active(self, run: Run | None) -> frozenset[str]:
        """Write jobs between their borders. One whose last border could not be taken is not among them."""
        borders = self._runs.borders(run.run_id) if run is not None else []
        known = self._ledger.many(borders[-1].active) if borders else {}
        return frozenset(job_id for job_id, job in known.items() if not job.has_ended)

    def _is_readable(self, run: Run) -> bool:
        try:
            self._runs.baseline(run)
            self._runs.borders(run.run_id)
        except FileDamaged as problem:
            log.warning("A new run begins: %s", problem)
            return False
        return True

    def is_active(self, run: Run, job_id: str) -> bool:
        return job_id in self._active(run)

    def _add_border(self, run: Run, snapshot: Snapshot, active: frozenset[str]) -> None:
        self._runs.add_border(run.run_id, snapshot.started_at, _text(snapshot), active)

    def _porcelain(self) -> str:
        """What git says of the tree, without running anything that the repository configures."""
        with git_view(Path(self.tree)) as view:
            if isinstance(view, GitRun):
                return ""  # the snapshot says what is wrong with it
            ran = view.git("status", "--porcelain", "--untracked-files=all", "-z")
        return ran.stdout.decode("utf-8", "replace").replace("\0", "\n")

    # ── judging ────────────────────────────────────────────────────────────

    def judge(self, run: Run) -> Judged:
        """Credit every change between the borders of a run to the jobs that made it, or may have."""
        borders = self._runs.borders(run.run_id)
        shown = dict(self._runs.evidence(run.run_id))
        jobs = self._ledger.of_run(run.run_id)
        for job in jobs:
            # One that still runs: what it has under way must not look like somebody else's.
            if job.job_id not in shown:
                shown[job.job_id] = shown_so_far(self._places, job, self._merged(job))
        snapshots = [border.snapshot for border in borders]
        times = [(border.at, border.active) for border in borders]
        is_timed = is_steady([(each.started_at, each.steady_at) for each in snapshots])
        intervals = intervals_of(times, self._changes(snapshots), is_timed=is_timed)
        rollbacks = in_force(self.rollbacks.records())
        found = without_failed_attempts(credit(intervals, shown), rollbacks)
        ids = {job.job_id for job in jobs}
        resolved = self._runs.resolved(run.run_id)
        gone = rolled_back(rollbacks) & ids
        known = [claim for claim in found.claims if claim.job_id in ids - gone]
        at_once = conflicts(known, [border.active for border in borders], resolved=resolved)
        return Judged(run, tuple(jobs), found, at_once, shown, gone)

    def _merged(self, job: Job) -> tuple[str, ...]:
        """What is being merged, or was, of a job that works apart."""
        if job.isolation == "shared":
            return ()
        journals = (record.journal for record in self.merges.records())
        return tuple(
            operation.path
            for journal in journals
            if job.job_id in journal.jobs
            for operation in journal.operations
            if operation.kind in ("put", "remove")
        )

    def _changes(self, snapshots: list[Snapshot]) -> list[tuple[Change, ...]]:
        pairs = pairwise(snapshots)
        return [
            () if before.tree == after.tree else self.shadow.changes(before, after) for before, after in pairs
        ]

    # ── closing ────────────────────────────────────────────────────────────

    def is_expired(self, run: Run, expiry_s: float) -> bool:
        """Whether an open run is to be closed: its last job ended long ago and nothing conflicts."""
        jobs = self._ledger.of_run(run.run_id)
        last = max((job.ended_at for job in jobs), default=run.created_at)
        if not expiry_s or any(not job.has_ended for job in jobs) or self._ledger.now() - last < expiry_s:
            return False
        return not any(conflict.blocks for conflict in self._conflicts(run))

    def _conflicts(self, run: Run) -> tuple[Conflict, ...]:
        try:
            return self.judge(run).conflicts
        except LanewayError:
            return ()  # the tree is gone, or is none any more


def _text(snapshot: Snapshot) -> str:
    return _encode(snapshot).decode()


def _changes_of(judged: Judged) -> Iterator[Change]:
    for claim in judged.credits.claims:
        for span in claim.spans:
            yield Change(claim.path, span.before, span.after)


def _kind_of(claim: PathClaim) -> str:
    before, after = claim.spans[0].before, claim.spans[-1].after
    if before.kind == "absent":
        return "added"
    if after.kind == "absent":
        return "deleted"
    if before.kind == after.kind and before.blob == after.blob and before.fingerprint == after.fingerprint:
        return "mode"
    return "modified"


# ── rollbacks that are under way ───────────────────────────────────────────

ROLLBACK_LOCK = "rollback.lock"
"""Held for as long as files of a tree are being given back."""


def trees_being_rolled_back(places: JobsLayout, ledger: Ledger) -> frozenset[str]:
    """Trees in which no job may start now: of those that queued jobs are for, and around or in these."""
    wanted = ledger.queued_trees()
    if not wanted:
        return frozenset()
    near = (tree for tree in RunLedger(ledger).trees() if any(is_nested(tree, each) for each in wanted))
    return frozenset(tree for tree in {*wanted, *near} if is_held(places.tree(tree) / ROLLBACK_LOCK))
