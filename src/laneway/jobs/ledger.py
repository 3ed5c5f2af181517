"""The ledger of background jobs: who asked for what, where each job stands, in the shared SQLite file.

Any process may read and write it, each call in one transaction. A status is changed only from one that the
caller expects, so that two processes cannot both start, cancel or end a job. What belongs to one job alone
(prompt, events, result) is in its folder. Runs and their evidence are in `laneway.jobs.run_ledger`. Blocking.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from laneway.base.ids import new_id
from laneway.jobs.model import ACTIVE, HERE, UNFINISHED, Isolation, Job, JobFailure, Mode, Status
from laneway.store.database import Database

if TYPE_CHECKING:
    import sqlite3

_COLUMNS = (
    "job_id, number, owner, mode, status, tree, run_id, priority, after_job, cwd, node, title, facts,"
    " attempt, thread_id, activity, tokens, created_at, started_at, ended_at, ended_number, failure,"
    " is_inconsistent"
)
T = TypeVar("T")
_HERE = "node IN ({})".format(", ".join(f"'{name}'" for name in HERE))
_QUEUED = f"status = 'queued' AND ended_number = 0 AND {_HERE}"
Statement: TypeAlias = tuple[str, tuple[Any, ...]]
MAX_LISTED = 200
HOME = "home"
LAST_ENDED = "jobs_last_ended"
"""Of the facts about the file: its id, and the last ended number of jobs that were removed."""


class _JobFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What nobody searches by, in one column."""

    scope: tuple[str, ...] = ()
    overlaps: bool = False
    isolation: Isolation = "shared"
    tags: tuple[str, ...] = ()


UNREADABLE_ROW = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)
"""What decoding a value raises that somebody else has written into the file."""
_decode_facts = msgspec.json.Decoder(_JobFacts).decode
UNREADABLE = JobFailure("unknown", "What the ledger has about the end of this job cannot be read.")
_decode_failure = msgspec.json.Decoder(JobFailure).decode


class Totals(msgspec.Struct, frozen=True):
    """Tokens used by jobs."""

    today: int
    by_day: dict[str, int]
    """By date, the newest first: days on which jobs were started."""
    by_run: dict[str, int]


class Ledger:
    """The table of jobs. `now` is the wall clock in seconds since 1970."""

    def __init__(self, database: Database, now: Callable[[], float] = time.time) -> None:
        self.database = database
        self.now = now

    # ── adding and reading ─────────────────────────────────────────────────

    def add(self, job: Job, *also: Statement) -> Job:
        """A new queued job; its number and its time are given here. If there is one of its id, that one.

        `also`: what is written with it.
        """
        created_at = self.now()
        facts = _JobFacts(job.scope, job.overlaps, job.isolation, job.tags)
        values = {
            "job_id": job.job_id,
            "owner": job.owner,
            "mode": job.mode,
            "status": job.status,
            "tree": job.tree,
            "run_id": job.run_id,
            "priority": job.priority,
            "after_job": job.after,
            "cwd": job.cwd,
            "node": job.node,
            "title": job.title,
            "facts": msgspec.json.encode(facts).decode(),
            "thread_id": job.thread_id,
            "created_at": created_at,
        }
        statement = f"INSERT INTO jobs ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        statement += " ON CONFLICT (job_id) DO NOTHING"

        def work(connection: sqlite3.Connection) -> int:
            added = connection.execute(statement, tuple(values.values()))
            for more in also:
                connection.execute(*more)
            return added.lastrowid or 0 if added.rowcount == 1 else 0

        number = self.database.write(work)
        if not number:
            return self.many((job.job_id,))[job.job_id]
        return msgspec.structs.replace(job, number=number, created_at=created_at)

    def get(self, job_id: str) -> Job | None:
        return self.many((job_id,)).get(job_id)

    def many(self, job_ids: Iterable[str]) -> dict[str, Job]:
        """Those that there are."""
        rows = self._select(
            "JOIN json_each(?) AS ids ON jobs.job_id = ids.value", (_json(list(job_ids)),), distinct=True
        )
        return {job.job_id: job for job in rows}

    def queued(self) -> list[Job]:
        """On this machine, as all that is about starting them."""
        return self._select(f"WHERE {_QUEUED} ORDER BY number")

    def queued_modes(self) -> frozenset[Mode]:
        """Of the queued jobs: much cheaper than the jobs, where there are many."""
        return frozenset(self._distinct("mode"))

    def queued_trees(self) -> frozenset[str]:
        """Work trees of queued write jobs."""
        return frozenset(self._distinct("tree")) - {""}

    def queued_count(self) -> int:
        query = f"SELECT count(*) FROM jobs WHERE {_QUEUED}"
        return int(self.database.read(lambda c: c.execute(query).fetchone()[0]))

    def active(self) -> list[Job]:
        """Those with a supervisor, or whose supervisor died."""
        return self._select(
            f"WHERE ended_number = 0 AND status IN {_sql(ACTIVE)} AND {_HERE} ORDER BY number"
        )

    def elsewhere(self) -> list[Job]:
        """Those on other machines that have not ended, as far as is known here; the oldest first."""
        return self._select(f"WHERE ended_number = 0 AND NOT {_HERE} ORDER BY number")

    def unfinished(self, owner: str | None = None) -> list[Job]:
        rows = self._select("WHERE ended_number = 0 ORDER BY number")
        return [job for job in rows if owner in (None, job.owner)]

    def of_run(self, run_id: str) -> list[Job]:
        return self._select("WHERE run_id = ? AND run_id != '' ORDER BY number", (run_id,))

    def listed(
        self,
        owner: str | None = None,
        *,
        statuses: Collection[Status] = (),
        tag: str | None = None,
        run_id: str | None = None,
        before: int | None = None,
        limit: int = MAX_LISTED,
    ) -> list[Job]:
        """The newest first, from the one after the number `before` on."""
        terms: list[str] = []
        values: list[Any] = []
        for term, value in (("owner = ?", owner), ("run_id = ?", run_id), ("number < ?", before)):
            if value is not None:
                terms.append(term)
                values.append(value)
        if statuses:
            terms.append(f"status IN {_sql(statuses)}")
        if tag is not None:
            terms.append("EXISTS (SELECT 1 FROM json_each(jobs.facts, '$.tags') AS t WHERE t.value = ?)")
            values.append(tag)
        where = f"WHERE {' AND '.join(terms)} " if terms else ""
        return self._select(f"{where}ORDER BY number DESC LIMIT {int(limit)}", tuple(values))

    def ended_before(self, moment: float) -> list[Job]:
        return self._select("WHERE ended_number > 0 AND ended_at < ? ORDER BY number", (moment,))

    def position(self, job: Job) -> int:
        """How many queued jobs of its mode go before a queued one, counted from one."""
        query = (
            f"SELECT count(*) FROM jobs WHERE {_QUEUED} AND mode = ?"
            " AND (priority > ? OR (priority = ? AND number <= ?))"
        )
        values = (job.mode, job.priority, job.priority, job.number)
        return int(self.database.read(lambda c: c.execute(query, values).fetchone()[0]))

    def totals(self, owner: str | None, today: float, since: float) -> Totals:
        """Tokens of one owner's jobs, or of all: of those created today, on each day since then, and of each
        run that is open or was closed today.
        """
        whose, values = ("TRUE", ()) if owner is None else ("owner = ?", (owner,))

        def work(connection: sqlite3.Connection) -> Totals:
            of_today = connection.execute(
                f"SELECT coalesce(sum(tokens), 0) FROM jobs WHERE {whose} AND created_at >= ?",
                (*values, today),
            ).fetchone()[0]
            by_day = connection.execute(
                "SELECT date(created_at, 'unixepoch', 'localtime') AS day, sum(tokens) FROM jobs"
                f" WHERE {whose} AND created_at >= ? GROUP BY day ORDER BY day DESC",
                (*values, since),
            )
            by_run = connection.execute(
                f"SELECT run_id, sum(tokens) FROM jobs WHERE {whose} AND run_id IN"
                " (SELECT run_id FROM runs WHERE state = 'open' OR closed_at >= ?)"
                " GROUP BY run_id ORDER BY max(number) DESC",
                (*values, today),
            )
            return Totals(int(of_today), dict(by_day.fetchall()), dict(by_run.fetchall()))

        return self.database.read(work)

    def home(self) -> str:
        """The id of this file: jobs on other machines belong to the ledger that accepted them."""
        known = self.database.meta(HOME)
        if known is None:
            row = (HOME, new_id("home"))
            self.database.write(lambda c: c.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", row))
            known = self.database.meta(HOME)
        return known or ""

    # ── changing ───────────────────────────────────────────────────────────

    def change(self, job_id: str, *, expects: tuple[Status, ...], **columns: Any) -> bool:
        """Set columns if the job has one of these statuses; whether it had."""
        return self.database.write(lambda connection: _change(connection, job_id, expects, columns))

    def end(
        self,
        job_id: str,
        status: Status,
        failure: JobFailure | None = None,
        *,
        expects: Collection[Status] = UNFINISHED,
        is_inconsistent: bool = False,
        **columns: Any,
    ) -> bool:
        """Write the end; false if the job had ended before. Gives it the next ended number."""

        def work(connection: sqlite3.Connection) -> bool:
            last = _last_ended(connection)
            end = {
                "status": status,
                "failure": "" if failure is None else _json(failure),
                "ended_at": self.now(),
                "ended_number": last + 1,
                "activity": "",
                "is_inconsistent": is_inconsistent,
            }
            return _change(connection, job_id, expects, end | columns)

        return self.database.write(work)

    def remove(self, job_ids: Sequence[str]) -> None:
        """Delete ended jobs. Their ended numbers are not given again: cursors of waits may have them."""
        statement = "DELETE FROM jobs WHERE ended_number > 0 AND job_id IN (SELECT value FROM json_each(?))"
        others = [
            f"DELETE FROM {table} WHERE job_id IN (SELECT value FROM json_each(?))"
            for table in ("evidence", "remote_jobs")
        ]
        ids = _json(list(job_ids))

        def work(connection: sqlite3.Connection) -> None:
            last = _last_ended(connection)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (LAST_ENDED, str(last)))
            connection.execute(statement, (ids,))
            for other in others:
                connection.execute(other, (ids,))

        self.database.write(work)

    def _distinct(self, column: str) -> Iterator[Any]:
        """Of the queued jobs."""
        query = f"SELECT DISTINCT {column} FROM jobs WHERE {_QUEUED}"
        return (row[0] for row in self.database.read(lambda c: c.execute(query).fetchall()))

    def _select(self, rest: str, values: tuple[Any, ...] = (), *, distinct: bool = False) -> list[Job]:
        query = f"SELECT {'DISTINCT ' if distinct else ''}{_COLUMNS} FROM jobs {rest}"
        return [_job(row) for row in self.database.read(lambda c: c.execute(query, values).fetchall())]


def _last_ended(connection: sqlite3.Connection) -> int:
    """The highest number that was ever given to an ended job."""
    query = (
        "SELECT max((SELECT coalesce(max(ended_number), 0) FROM jobs),"
        " (SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta WHERE key = ?))"
    )
    return int(connection.execute(query, (LAST_ENDED,)).fetchone()[0])


def _change(
    connection: sqlite3.Connection, job_id: str, expects: Collection[Status], columns: dict[str, Any]
) -> bool:
    sets = ", ".join(f"{name} = ?" for name in columns)
    statement = f"UPDATE jobs SET {sets} WHERE job_id = ? AND ended_number = 0 AND status IN {_sql(expects)}"
    return connection.execute(statement, (*columns.values(), job_id)).rowcount == 1


def _job(row: tuple[Any, ...]) -> Job:
    (job_id, number, owner, mode, status, tree, run_id, priority, after, cwd, node, title, facts_json) = row[
        :13
    ]
    attempt, thread_id, activity, tokens, created_at, started_at, ended_at, ended_number = row[13:21]
    facts = _readable(facts_json, _decode_facts, _JobFacts())
    return Job(
        job_id=job_id,
        number=number,
        owner=owner,
        mode=mode,
        status=status,
        tree=tree,
        run_id=run_id,
        priority=priority,
        scope=facts.scope,
        overlaps=facts.overlaps,
        isolation=facts.isolation,
        after=after,
        tags=facts.tags,
        title=title,
        cwd=cwd,
        node=node,
        attempt=attempt,
        thread_id=thread_id,
        activity=activity,
        tokens=tokens,
        created_at=created_at,
        started_at=started_at,
        ended_at=ended_at,
        ended_number=ended_number,
        failure=_readable(row[21], _decode_failure, UNREADABLE) if row[21] else None,
        is_inconsistent=bool(row[22]),
    )


def _readable(text: Any, decode: Callable[[str], T], otherwise: T) -> T:
    """One damaged row must not hide all the others."""
    try:
        return decode(text)
    except UNREADABLE_ROW:
        return otherwise


def _sql(statuses: Collection[Status]) -> str:
    """Our own words, as a list in SQL."""
    return "(" + ", ".join(f"'{status}'" for status in statuses) + ")"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
