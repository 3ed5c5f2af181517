"""The SQLite database that Laneway processes share: opened on first use, private, with numbered migrations.

All work goes through `read` and `write`, each one transaction. Both block: from asyncio call them
through `asyncio.to_thread`. A file of a newer Laneway is refused and not touched; a damaged one is
moved aside, reported and replaced by a new one.
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
from laneway.base.foreign_files import NotRegular
from laneway.base.paths import state_home
from laneway.store.files import FILE_MODE, NO_SPACE, keep_aside, make_folder, trouble
from laneway.store.gates import gate
from laneway.store.migrations import MIGRATIONS
from laneway.store.stamps import utc_now

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger(__name__)
T = TypeVar("T")

BUSY_MS = 10_000
"""How long a transaction waits for another process. Transactions take milliseconds: a longer one hangs."""
OPENING_S = 3 * BUSY_MS / 1000
"""To wait for other processes that open the file: each may wait for a transaction and then migrate."""


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
        """Problems with the file, as sentences for the user."""
        self._migrations = migrations
        self._connection: sqlite3.Connection | None = None
        self._mutex = threading.Lock()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction that sees one consistent state."""
        return self._run("BEGIN", work)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in an exclusive write transaction; an exception rolls it back."""
        return self._run("BEGIN IMMEDIATE", work)

    def write_soon(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The same without waiting for the disk, twenty times faster.

        Nothing is lost when this process is killed, but a power cut may undo it, unless another transaction
        was written since.
        """
        return self._run("BEGIN IMMEDIATE", work, "NORMAL")

    def meta(self, key: str) -> str | None:
        """A fact about the file itself, such as `created_by`."""
        rows = self.read(lambda c: c.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchall())
        return str(rows[0][0]) if rows else None

    def check(self) -> tuple[str, ...]:
        """Let SQLite check the whole file. Returns the problems it finds."""
        try:
            rows = self.read(lambda connection: connection.execute("PRAGMA quick_check").fetchall())
        except FileDamaged as problem:
            return (str(problem),)
        return tuple(str(row[0]) for row in rows if row[0] != "ok")

    def close(self) -> None:
        """Safe to call twice; the next use opens it again."""
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, begin: str, work: Callable[[sqlite3.Connection], T], sync: str = "") -> T:
        with self._mutex, _store_errors(self.path):
            if self._connection is None:
                self._connection = self._open()
            if not sync:
                return _transact(self._connection, begin, work)
            self._connection.execute(f"PRAGMA synchronous = {sync}")
            try:
                return _transact(self._connection, begin, work)
            finally:
                self._connection.execute("PRAGMA synchronous = FULL")

    # ── opening ────────────────────────────────────────────────────────────

    def _open(self) -> sqlite3.Connection:
        make_folder(self.path.parent)
        # One process at a time: two that find it damaged must not move aside each other's new file.
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
            self._make_private()
            self._check_files()
        except OSError as problem:
            raise trouble(Path(problem.filename or self.path), problem) from problem
        connection = sqlite3.connect(
            self.path, isolation_level=None, timeout=BUSY_MS / 1000, check_same_thread=False
        )
        try:
            with _store_errors(self.path):
                self._refuse_newer(connection)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_private(self) -> None:
        """Make the file, if it is missing: SQLite gives its side files the permissions of this one."""
        if not os.path.lexists(self.path):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(self.path, flags, FILE_MODE))

    def _check_files(self) -> None:
        """Refuse files that are, say, pipes, on which SQLite would hang.

        No existing one is opened here: closing it would end the locks of this process's other connections,
        and the next process to leave would remove the journal that they are writing to.
        """
        for file in (self.path, *self._side_files()):
            if os.path.lexists(file) and not os.path.isfile(file):
                raise NotRegular(errno.ENXIO, "not a regular file", str(file))
        if not os.access(self.path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self.path))

    def _side_files(self) -> list[Path]:
        return [self.path.with_name(self.path.name + end) for end in ("-wal", "-shm", "-journal")]

    def _refuse_newer(self, connection: sqlite3.Connection) -> None:
        version, supported = _version(connection), len(self._migrations)
        if version > supported:
            raise FileNewer(str(self.path), version, supported)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        for number in range(_version(connection) + 1, len(self._migrations) + 1):

            def step(connection: sqlite3.Connection, number: int = number) -> None:
                self._migrations[number - 1](connection)
                connection.execute(f"PRAGMA user_version = {number}")

            _transact(connection, "BEGIN IMMEDIATE", step)

    def _keep_aside(self) -> Path:
        now = utc_now()
        for side_file in self._side_files():
            if os.path.lexists(side_file):
                keep_aside(side_file, "corrupt", now)
        return keep_aside(self.path, "corrupt", now)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _transact(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have rolled it back already
            connection.execute("ROLLBACK")
        raise
    return result


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into `StoreError`s, except for wrong SQL and broken constraints."""
    import sqlite3

    try:
        yield
    except sqlite3.DatabaseError as problem:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF  # the upper bits are only details
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
