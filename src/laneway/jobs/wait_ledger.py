"""The ledger of waits that go on without a caller: kept in SQLite, so that their ids outlive the server.

A wait ends when its jobs have ended, or when its time is up; its answer is written down once and does not
change any more. Cancelling a wait leaves the jobs alone. Blocking.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from laneway.base.ids import new_id
from laneway.jobs.ledger import UNREADABLE_ROW, Ledger
from laneway.jobs.waiting import Until

log = logging.getLogger(__name__)

KEPT_S = 7 * 24 * 60 * 60.0
"""At most, and by default: a client may come back after a holiday."""
MAX_WAITS = 1000
"""Of one owner; one more replaces the oldest."""
_COLUMNS = "task_id, owner, tool, arguments, created_at, expires_at, is_cancelled, result"


class WaitFor(msgspec.Struct, frozen=True):
    """What is waited for."""

    until: Until
    job_ids: tuple[str, ...]
    cursor: str | None = None
    deadline: float | None = None
    """In seconds since 1970; none: as long as it takes."""


_decode_wait = msgspec.json.Decoder(WaitFor).decode
_decode_answer = msgspec.json.Decoder(dict[str, Any]).decode


class WaitTask(msgspec.Struct, frozen=True, kw_only=True):
    task_id: str
    owner: str
    tool: str
    wait: WaitFor
    created_at: float
    expires_at: float
    is_cancelled: bool = False
    answer: dict[str, Any] | None = None


class WaitLedger:
    """The table of waits."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database
        self._now = ledger.now

    def add(self, owner: str, tool: str, wait: WaitFor, kept_s: float | None) -> WaitTask:
        now = self._now()
        task = WaitTask(
            task_id=new_id("wait"),
            owner=owner,
            tool=tool,
            wait=wait,
            created_at=now,
            expires_at=now + min(KEPT_S, KEPT_S if kept_s is None else kept_s),
        )
        row = (task.task_id, owner, tool, _json(wait), now, task.expires_at)
        self._write(
            ("DELETE FROM job_waits WHERE expires_at < ?", (now,)),
            (
                "DELETE FROM job_waits WHERE task_id IN (SELECT task_id FROM job_waits WHERE owner = ?"
                " ORDER BY created_at DESC LIMIT -1 OFFSET ?)",
                (owner, MAX_WAITS - 1),
            ),
            (
                "INSERT INTO job_waits (task_id, owner, tool, arguments, created_at, expires_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                row,
            ),
        )
        return task

    def get(self, task_id: str, owner: str) -> WaitTask | None:
        """None if it never was, has expired, or is somebody else's."""
        query = f"SELECT {_COLUMNS} FROM job_waits WHERE task_id = ? AND owner = ? AND expires_at >= ?"
        rows = self._read(query, (task_id, owner, self._now()))
        return next(_tasks(rows), None)

    def find(self, task_id: str) -> WaitTask | None:
        """Whosesoever it is."""
        rows = self._read(f"SELECT {_COLUMNS} FROM job_waits WHERE task_id = ?", (task_id,))
        return next(_tasks(rows), None)

    def listed(self, owner: str, before: float | None, limit: int) -> list[WaitTask]:
        """The newest first."""
        query = (
            f"SELECT {_COLUMNS} FROM job_waits WHERE owner = ? AND expires_at >= ?"
            " AND (? IS NULL OR created_at < ?) ORDER BY created_at DESC LIMIT ?"
        )
        return list(_tasks(self._read(query, (owner, self._now(), before, before, limit))))

    def answer(self, task_id: str, answer: dict[str, Any]) -> None:
        """Write the answer down, if there is none yet and the wait was not cancelled."""
        self._write(
            (
                "UPDATE job_waits SET result = ? WHERE task_id = ? AND result = '' AND is_cancelled = 0",
                (_json(answer), task_id),
            )
        )

    def cancel(self, task_id: str) -> None:
        """Unless it has an answer."""
        self._write(("UPDATE job_waits SET is_cancelled = 1 WHERE task_id = ? AND result = ''", (task_id,)))

    def _read(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._database.read(lambda c: c.execute(query, values).fetchall())
        return rows

    def _write(self, *statements: tuple[str, Sequence[Any]]) -> None:
        def work(connection: Any) -> None:
            for statement, values in statements:
                connection.execute(statement, values)

        self._database.write(work)


def _tasks(rows: Iterable[tuple[Any, ...]]) -> Iterator[WaitTask]:
    """Those that can be read: a damaged row is as one that has expired."""
    for row in rows:
        try:
            yield _task(row)
        except UNREADABLE_ROW as problem:
            log.warning("The wait %s cannot be read: %s", row[0], problem)


def _task(row: tuple[Any, ...]) -> WaitTask:
    return WaitTask(
        task_id=row[0],
        owner=row[1],
        tool=row[2],
        wait=_decode_wait(row[3]),
        created_at=row[4],
        expires_at=row[5],
        is_cancelled=bool(row[6]),
        answer=_decode_answer(row[7]) if row[7] else None,
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
