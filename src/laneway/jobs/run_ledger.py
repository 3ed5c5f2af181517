"""The ledger of runs: baselines, borders, the evidence of each job, and which conflicts are resolved.

A work tree has at most one open run; SQLite sees to it. Blocking.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from laneway.base.errors import FileDamaged
from laneway.base.ids import new_id
from laneway.jobs.attribution import JobTraces
from laneway.jobs.ledger import UNREADABLE_ROW, Ledger
from laneway.jobs.model import Border, Run, RunState
from laneway.jobs.snapshots.model import Snapshot

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger(__name__)
T = TypeVar("T")
_RUN = "run_id, tree, state, baseline, head, porcelain, created_at, closed_at"
MAX_PORCELAIN_CHARS = 64 * 1024
"""Of a tree's status when its run began: for people."""


_decode_evidence = msgspec.json.Decoder(JobTraces).decode
_decode_snapshot = msgspec.json.Decoder(Snapshot).decode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode


class RunLedger:
    """The tables of runs."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database
        self._now = ledger.now

    def open_run(self, tree: str) -> Run | None:
        rows = self._runs("WHERE tree = ? AND state = 'open'", (tree,))
        return rows[0] if rows else None

    def get(self, run_id: str) -> Run | None:
        rows = self._runs("WHERE run_id = ?", (run_id,))
        return rows[0] if rows else None

    def last_run(self, tree: str) -> Run | None:
        rows = self._runs("WHERE tree = ? ORDER BY created_at DESC LIMIT 1", (tree,))
        return rows[0] if rows else None

    def all_runs(self) -> list[Run]:
        return self._runs("ORDER BY created_at")

    def trees(self) -> frozenset[str]:
        """Work trees that have, or had, runs."""
        query = "SELECT DISTINCT tree FROM runs"
        return frozenset(row[0] for row in self._database.read(lambda c: c.execute(query).fetchall()))

    def open_runs(self) -> list[Run]:
        return self._runs("WHERE state = 'open' ORDER BY created_at")

    def begin(self, tree: str, baseline: str, head: str, porcelain: str) -> Run:
        """The tree's new run. Only under the tree's gate, when it has no open one."""
        run = Run(
            run_id=new_id("run"),
            tree=tree,
            state="open",
            baseline=baseline,
            head=head,
            porcelain=porcelain[:MAX_PORCELAIN_CHARS],
            created_at=self._now(),
        )
        values = (run.run_id, tree, run.state, baseline, head, run.porcelain, run.created_at)
        statement = (
            "INSERT INTO runs (run_id, tree, state, baseline, head, porcelain, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        self._database.write(lambda c: c.execute(statement, values))
        return run

    def close(self, run_id: str, state: RunState, *, expects: RunState = "open") -> bool:
        """Whether the run had the expected state."""
        statement = "UPDATE runs SET state = ?, closed_at = ? WHERE run_id = ? AND state = ?"
        values = (state, self._now(), run_id, expects)
        return self._database.write(lambda c: c.execute(statement, values).rowcount) == 1

    def reopen(self, run_id: str) -> bool:
        """After an undo; false if the tree has another open run by now."""
        import sqlite3

        statement = "UPDATE runs SET state = 'open', closed_at = 0 WHERE run_id = ? AND state = 'rolled_back'"
        try:
            return self._database.write(lambda c: c.execute(statement, (run_id,)).rowcount) == 1
        except sqlite3.IntegrityError:
            return False

    def remove(self, run_ids: Sequence[str]) -> None:
        ids = msgspec.json.encode(list(run_ids)).decode()

        def work(connection: sqlite3.Connection) -> None:
            for table in ("borders", "resolutions", "evidence", "runs"):
                connection.execute(
                    f"DELETE FROM {table} WHERE run_id IN (SELECT value FROM json_each(?))", (ids,)
                )

        self._database.write(work)

    # ── borders and evidence ───────────────────────────────────────────────

    def add_border(self, run_id: str, at: float, snapshot: str, active: Collection[str]) -> None:
        statement = "INSERT INTO borders (run_id, at, snapshot, active) VALUES (?, ?, ?, ?)"
        values = (run_id, at, snapshot, msgspec.json.encode(sorted(active)).decode())
        self._database.write(lambda c: c.execute(statement, values))

    def baseline(self, run: Run) -> Snapshot:
        """The tree as it was when the run began. `FileDamaged` if that cannot be read."""
        try:
            return _decode_snapshot(run.baseline)
        except UNREADABLE_ROW as problem:
            raise self._damaged(run.run_id) from problem

    def borders(self, run_id: str) -> list[Border]:
        """In their order. `FileDamaged` if they cannot be read."""
        query = "SELECT number, run_id, at, snapshot, active FROM borders WHERE run_id = ? ORDER BY number"
        rows = self._database.read(lambda c: c.execute(query, (run_id,)).fetchall())
        try:
            return [
                Border(
                    number=row[0],
                    run_id=row[1],
                    at=row[2],
                    snapshot=_decode_snapshot(row[3]),
                    active=_decode_names(row[4]),
                )
                for row in rows
            ]
        except UNREADABLE_ROW as problem:
            raise self._damaged(run_id) from problem

    def set_evidence(self, job_id: str, run_id: str, shown: JobTraces) -> None:
        statement = "INSERT OR REPLACE INTO evidence (job_id, run_id, facts) VALUES (?, ?, ?)"
        values = (job_id, run_id, msgspec.json.encode(shown).decode())
        self._database.write(lambda c: c.execute(statement, values))

    def evidence(self, run_id: str) -> dict[str, JobTraces]:
        query = "SELECT job_id, facts FROM evidence WHERE run_id = ?"
        rows = self._database.read(lambda c: c.execute(query, (run_id,)).fetchall())
        found: dict[str, JobTraces] = {}
        for job_id, facts in rows:
            try:
                found[job_id] = _decode_evidence(facts)
            except UNREADABLE_ROW as problem:  # its event log says nearly as much
                log.warning("What job %s has shown of its edits cannot be read: %s", job_id, problem)
        return found

    # ── conflicts that a person has merged ─────────────────────────────────

    def set_resolved(self, run_id: str, paths: Collection[str]) -> None:
        rows = [(run_id, path) for path in paths]
        statement = "INSERT OR IGNORE INTO resolutions (run_id, path) VALUES (?, ?)"
        self._database.write(lambda c: c.executemany(statement, rows))

    def resolved(self, run_id: str) -> frozenset[str]:
        query = "SELECT path FROM resolutions WHERE run_id = ?"
        return frozenset(
            row[0] for row in self._database.read(lambda c: c.execute(query, (run_id,)).fetchall())
        )

    def _runs(self, rest: str, values: tuple[Any, ...] = ()) -> list[Run]:
        query = f"SELECT {_RUN} FROM runs {rest}"
        rows = self._database.read(lambda c: c.execute(query, values).fetchall())
        return [Run(**dict(zip(_RUN.split(", "), row, strict=True))) for row in rows]

    def _damaged(self, run_id: str) -> FileDamaged:
        path = str(self._database.path)
        return FileDamaged(f"{path} is damaged: what it has about {run_id} cannot be read.", path)
