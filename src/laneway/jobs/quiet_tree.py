"""Locks a work tree for a rollback or a merge: no write job of it runs, and none can start.

The tree's rollback lock, which the dispatcher looks at, is taken before anything is decided. Blocking.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from laneway.base.errors import UsageError
from laneway.base.plain import code_label
from laneway.jobs.dispatch import GATE_S
from laneway.jobs.ledger import Ledger
from laneway.jobs.places import JobsLayout
from laneway.jobs.rules import is_nested
from laneway.jobs.runs import ROLLBACK_LOCK, TreeRuns
from laneway.jobs.slots import held
from laneway.store.files import make_folder
from laneway.store.gates import gate


@contextmanager
def quiet_tree(places: JobsLayout, ledger: Ledger, runs: TreeRuns, *, but_for: str = "") -> Iterator[None]:
    """For the block; `UsageError` if a write job of the tree runs, `but_for` the one that asks."""
    make_folder(runs.folder)
    with held(runs.folder / ROLLBACK_LOCK) as is_ours:
        if not is_ours:
            raise UsageError("Another process is rolling back in this tree: try again in a moment.")
        # A dispatcher that looked before we had the lock has started its job when we have its gate.
        with gate(places.dispatch_lock, patience_s=GATE_S):
            pass
        for job in ledger.active():
            is_here = job.tree == runs.tree or is_nested(job.tree, runs.tree)
            if is_here and job.job_id != but_for:
                where = code_label(job.tree)
                raise UsageError(f"Job {job.job_id} is writing in {where}: wait for it, or cancel it first.")
        runs.rollbacks.recover()
        yield


def finish_if_quiet(runs: TreeRuns) -> None:
    """Finish what a killed process has left half written, unless somebody is at it now."""
    if runs.folder.exists():
        with held(runs.folder / ROLLBACK_LOCK) as is_ours:
            if is_ours:
                runs.finish_cut_off()
