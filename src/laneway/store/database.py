"""One SQLite file for what many processes share: opened when first used, private, migrated by number.

All work goes through `read` and `write`, each one transaction. Both block; from asyncio call
them through `asyncio.to_thread`. A file of a newer Laneway is refused and left alone; a
damaged one is kept aside and reported, and a new one begins.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from laneway.base.errors import FileDamaged, FileNewer, StoreError
from laneway.base.foreign_files import NotRegular, open_regular
from laneway.base.paths import state_home
from laneway.store.files import NO_SPACE, keep_aside, make_folder, trouble
from laneway.store.gates import gate
from laneway.store.migrations import MIGRATIONS
from laneway.store.stamps import utc_now

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger(__name__)
T = TypeVar("T")

BUSY_MS = 10_000
"""How long a transaction waits for another process's. They take milliseconds: past this one hangs."""
OPENING_S = 3 * BUSY_MS / 1000
"""To wait for others who open the file, one at a time: each may wait for a transaction and then migrate."""


def database_path(environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_STATE_HOME/laneway/laneway.db`."""
    return state_home(environment) / "laneway.db"


class Database:
    """`with Database(path) as db: db.write(lambda connection: …)`. Threads may share one."""

    def __init__(
        self, path: Path, migrations: Sequence[Callable[[sqlite3.Connection], None]] = MIGRATIONS
    ) -> None:
        self.path = path
        self.reports: tuple[str, ...] = ()
        """What its user should be told about the file that was found, as sentences."""
        self._migrations = migrations
        self._connection: sqlite3.Connection | None = None
        self._turn = threading.Lock()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run it in a transaction that sees one state of the file throughout."""
        return self._run("BEGIN", work)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run it in a transaction that no other writer can get into; an exception undoes all of it."""
        return self._run("BEGIN IMMEDIATE", work)

    def meta(self, key: str) -> str | None:
        """A fact about the file itself, such as `created_by`."""
        rows = self.read(lambda c: c.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchall())
        return str(rows[0][0]) if rows else None

    def check(self) -> tuple[str, ...]:
        """Have SQLite look through the whole file; what it finds wrong."""
        try:
            rows = self.read(lambda connection: connection.execute("PRAGMA quick_check").fetchall())
        except FileDamaged as problem:
            return (str(problem),)
        return tuple(str(row[0]) for row in rows if row[0] != "ok")

    def close(self) -> None:
        """Twice is harmless; the next use opens it again."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._turn, _worded(self.path):
            if self._connection is None:
                self._connection = self._open()
            return _transact(self._connection, begin, work)

    # ── opening ────────────────────────────────────────────────────────────

    def _open(self) -> sqlite3.Connection:
        make_folder(self.path.parent)
        # One at a time: two who find it damaged must not keep aside each other's new file.
        with gate(self.path.with_name(f".{self.path.name}.lock"), patience_s=OPENING_S):
            try:
                return self._connect()
            except FileDamaged as problem:
                aside = self._keep_aside()
                report = f"{problem} It is kept as {aside.name}; a new one begins."
                self.reports = (*self.reports, report)
                log.warning("%s", report)
                return self._connect()

    def _connect(self) -> sqlite3.Connection:
        import sqlite3

        try:
            # SQLite gives its side files the permissions of this one.
            os.close(open_regular(self.path, os.O_RDWR | os.O_CREAT))
            self._check_side_files()
        except OSError as problem:
            raise trouble(Path(problem.filename or self.path), problem) from problem
        connection = sqlite3.connect(
            self.path, isolation_level=None, timeout=BUSY_MS / 1000, check_same_thread=False
        )
        try:
            with _worded(self.path):
                self._refuse_newer(connection)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_side_files(self) -> None:
        """SQLite would wait for a pipe. They are not opened here: closing them would end its locks."""
        for side in self._side_files():
            if os.path.lexists(side) and not os.path.isfile(side):
                raise NotRegular(errno.ENXIO, "not a regular file", str(side))

    def _side_files(self) -> list[Path]:
        return [self.path.with_name(self.path.name + end) for end in ("-wal", "-shm", "-journal")]

    def _refuse_newer(self, connection: sqlite3.Connection) -> None:
        version, known = _version(connection), len(self._migrations)
        if version > known:
            raise FileNewer(str(self.path), version, known)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        for number in range(_version(connection) + 1, len(self._migrations) + 1):

            def step(inside: sqlite3.Connection, number: int = number) -> None:
                self._migrations[number - 1](inside)
                inside.execute(f"PRAGMA user_version = {number}")

            _transact(connection, "BEGIN IMMEDIATE", step)

    def _keep_aside(self) -> Path:
        when = utc_now()
        for side in self._side_files():
            if os.path.lexists(side):
                keep_aside(side, "corrupt", when)
        return keep_aside(self.path, "corrupt", when)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _transact(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have undone it already
            connection.execute("ROLLBACK")
        raise
    return result


@contextmanager
def _worded(path: Path) -> Iterator[None]:
    """SQLite's refusals as ours. A mistake in the SQL or a broken constraint stays what it is."""
    import sqlite3

    try:
        yield
    except sqlite3.DatabaseError as problem:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF  # the upper bits only say more about it
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise FileDamaged(f"{path} is damaged: SQLite cannot read it.", str(path)) from problem
        text = {
            sqlite3.SQLITE_FULL: NO_SPACE.format(path),
            sqlite3.SQLITE_READONLY: f"Laneway cannot write {path}: permission denied. Check its owner.",
            sqlite3.SQLITE_CANTOPEN: f"Laneway cannot open {path}. Check its folder's owner and permissions.",
            sqlite3.SQLITE_BUSY: f"Another process keeps {path} busy. End it and try again.",
            sqlite3.SQLITE_IOERR: f"Laneway could not read or write {path}. Check the disk and its space.",
        }.get(code)
        if text is None:
            raise
        raise StoreError(text, str(path)) from problem
