"""What this side knows of jobs on other machines: whether they were sent, and to which ledger. Blocking.

A job's row is in the ledger like any other, with the machine's name, and follows what that machine says. Here
is what only this side needs:

    unsent ── begin ──▶ sending ── sent ──▶ sent
      └── withdraw ──▶ withdrawn

`sending` means that nobody knows whether the order arrived: it is sent again, which starts nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.jobs.ledger import Ledger
from laneway.jobs.model import UNFINISHED, Job
from laneway.jobs.nodes.messages import NodeJob

State: TypeAlias = Literal["unsent", "sending", "sent", "withdrawn"]
SAME_START_S = 5.0
"""What two answers differ in by when they say how long ago a job started; more is another start."""
_COLUMNS = "job_id, state, home, cancel, position"


class RemoteJob(msgspec.Struct, frozen=True):
    job_id: str
    state: State
    home: str = ""
    """The ledger that accepted it."""
    cancel: str = ""
    """`soft` or `force`: that is still to be said to the other machine."""
    position: int = 0
    """In the queue there."""


class RemoteLedger:
    """The table beside the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._database = ledger.database

    def add(self, job: Job, *, home: str = "") -> Job:
        """A job that is to be sent; or one that the machine of this ledger has made by itself."""
        state = "sent" if home else "unsent"
        statement = "INSERT INTO remote_jobs (job_id, state, home) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        return self._ledger.add(job, (statement, (job.job_id, state, home)))

    def get(self, job_id: str) -> RemoteJob | None:
        return self.many((job_id,)).get(job_id)

    def many(self, job_ids: Iterable[str]) -> dict[str, RemoteJob]:
        query = f"SELECT {_COLUMNS} FROM remote_jobs WHERE job_id IN (SELECT value FROM json_each(?))"
        values = (msgspec.json.encode(list(job_ids)).decode(),)
        rows = self._database.read(lambda c: c.execute(query, values).fetchall())
        return {row[0]: RemoteJob(*row) for row in rows}

    def begin(self, job_id: str) -> bool:
        """The order is about to be sent; false if it must not be, any more."""
        return self._write(
            "UPDATE remote_jobs SET state = 'sending' WHERE job_id = ? AND state IN ('unsent', 'sending')"
            " AND EXISTS (SELECT 1 FROM jobs WHERE jobs.job_id = remote_jobs.job_id AND ended_number = 0)",
            job_id,
        )

    def sent(self, job_id: str, home: str) -> None:
        self._write("UPDATE remote_jobs SET state = 'sent', home = ? WHERE job_id = ?", home, job_id)

    def withdraw(self, job_id: str) -> bool:
        """It will never be sent; false if that may have happened already."""
        return self._write(
            "UPDATE remote_jobs SET state = 'withdrawn' WHERE job_id = ?"
            " AND state IN ('unsent', 'withdrawn')",
            job_id,
        )

    def forget(self, job_id: str) -> None:
        """The machine refused it, and whoever asked for it is told: as if it had never been."""

        def work(connection: Any) -> None:
            found = connection.execute("DELETE FROM jobs WHERE job_id = ? AND ended_number = 0", (job_id,))
            if found.rowcount:
                connection.execute("DELETE FROM remote_jobs WHERE job_id = ?", (job_id,))

        self._database.write(work)

    def wish(self, job_id: str, cancel: str) -> None:
        """Somebody wants it cancelled. Force stays force."""
        self._write(
            "UPDATE remote_jobs SET cancel = ? WHERE job_id = ? AND cancel != 'force'", cancel, job_id
        )

    def wish_granted(self, job_id: str, cancel: str) -> None:
        self._write("UPDATE remote_jobs SET cancel = '' WHERE job_id = ? AND cancel = ?", job_id, cancel)

    def update(self, job: Job, there: NodeJob) -> bool:
        """Write down where the job stands there; whether anybody should look."""
        now = self._ledger.now()
        columns: dict[str, Any] = {
            "run_id": there.run_id,
            "thread_id": there.thread_id,
            "attempt": there.attempt,
            "tokens": there.tokens,
        }
        if there.started_ago_s is not None:
            started_at = now - there.started_ago_s
            if abs(started_at - job.started_at) > SAME_START_S or there.ended_ago_s is not None:
                columns["started_at"] = started_at
        if there.ended_ago_s is not None:
            return self._ledger.end(
                job.job_id,
                there.status,
                there.failure,
                is_inconsistent=there.is_inconsistent,
                ended_at=now - there.ended_ago_s,
                **columns,
            )
        if self.many((job.job_id,))[job.job_id].position != there.position:
            self._write("UPDATE remote_jobs SET position = ? WHERE job_id = ?", there.position, job.job_id)
        columns |= {"status": there.status, "activity": there.activity}
        changed = self._ledger.change(job.job_id, expects=UNFINISHED, **columns)
        return changed and there.status != job.status

    def _write(self, statement: str, *values: Any) -> bool:
        return self._database.write(lambda c: c.execute(statement, values).rowcount == 1)
