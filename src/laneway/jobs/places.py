"""The folders and files of background jobs on disk.

    $XDG_STATE_HOME/laneway/jobs/
        dispatch.lock          held while jobs are started
        bell                   its time changes whenever a job changes its status
        slots/                 read-0 … write-0 … total-0 …: one lock for each job that may run
        jobs/<job-id>/         lock, spec.json, environment, events.jsonl, stderr.txt, cancel, result.json …
        trees/<id>/            snapshots and rollbacks of one work tree

All of it is private. What many processes look at is in the SQLite file (`laneway.jobs.ledger`).
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from laneway.base.ids import new_id
from laneway.base.paths import state_home
from laneway.store.database import database_path

JOB_ID = re.compile(r"job-[0-9a-f]{16}")


class JobsLayout:
    """Paths only; who writes makes the folders."""

    def __init__(self, root: Path, database: Path) -> None:
        self.root = root
        self.database = database
        self.dispatch_lock = root / "dispatch.lock"
        self.bell = root / "bell"
        self.slots = root / "slots"
        self.jobs = root / "jobs"
        self.trees = root / "trees"

    @property
    def state(self) -> Path:
        """The folder of Laneway's own in which all of this is."""
        return self.database.parent

    @classmethod
    def of(cls, state: Path | None = None) -> JobsLayout:
        """The user's, or those below the state folder of a rehearsal."""
        if state is not None:
            return cls(state / "jobs", state / "laneway.db")
        return cls(state_home() / "jobs", database_path())

    def job(self, job_id: str) -> JobPlaces:
        """`ValueError` for anything but an id of ours: it becomes part of a path."""
        if not JOB_ID.fullmatch(job_id):
            raise ValueError(job_id)
        return JobPlaces(self.jobs / job_id)

    def tree(self, tree: str) -> Path:
        """The folder for snapshots of the work tree with this root."""
        return self.trees / hashlib.sha256(os.fsencode(tree)).hexdigest()[:16]


class JobPlaces:
    """The files of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = folder / "lock"
        self.spec = folder / "spec.json"
        self.order = folder / "order.json"
        """Of a job on another machine: what that is asked for."""
        self.answer = folder / "answer.json"
        """Of such a job that has ended: its result as it was answered then."""
        self.environment = folder / "environment.json"
        self.events = folder / "events.jsonl"
        self.stderr = folder / "stderr.txt"
        self.cancel = folder / "cancel"
        self.schema = folder / "schema.json"
        self.result = folder / "result.json"
        self.false_starts = folder / "false-starts"
        """A byte for each supervisor that was killed before it began."""
        self.supervisor_log = folder / "supervisor.log"
        self.work = folder / "work"
        """Layers of an overlay, or a worktree."""


def new_job_id() -> str:
    return new_id("job")
