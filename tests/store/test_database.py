"""The SQLite file: private, migrated, shared, never lost."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from laneway import __version__
from laneway.base.errors import FileDamaged, FileNewer, StoreError
from laneway.store.database import Database, database_path
from laneway.store.migrations import MIGRATIONS
from tests.adversary.odd_files import Maker, not_regular


def put(database: Database, key: str, value: str) -> None:
    database.write(lambda c: c.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value)))


def test_the_file_lies_in_the_users_state_folder() -> None:
    """Relative values are ignored, as the specification wants."""
    assert database_path({"XDG_STATE_HOME": "/s"}) == Path("/s/laneway/laneway.db")
    assert database_path({"XDG_STATE_HOME": "s"}) == Path.home() / ".local/state/laneway/laneway.db"


def test_it_is_made_when_first_used_for_us_alone_and_says_who_made_it(tmp_path: Path) -> None:
    """With its side files."""
    path = tmp_path / "state" / "laneway.db"
    with Database(path) as database:
        assert list(tmp_path.iterdir()) == []
        assert database.meta("created_by") == f"laneway {__version__}"
        assert database.meta("none") is None
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
        assert modes == dict.fromkeys(
            ["laneway.db", "laneway.db-wal", "laneway.db-shm", ".laneway.db.lock"], 0o600
        )
        pragmas = ("journal_mode", "foreign_keys", "user_version")
        values = database.read(lambda c: [c.execute(f"PRAGMA {p}").fetchone()[0] for p in pragmas])
        assert values == ["wal", 1, len(MIGRATIONS)]
        assert database.check() == ()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_sqlite_is_loaded_only_when_it_is_used() -> None:
    """It costs start-up time that most commands need not pay."""
    code = "import sys, laneway.store.store, laneway.store.database; print('sqlite3' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert told.stdout.strip() == b"False"


@not_regular
@pytest.mark.parametrize("name", ["laneway.db", "laneway.db-wal", "laneway.db-shm", "laneway.db-journal"])
def test_an_odd_thing_in_the_place_of_a_file_is_told_at_once(tmp_path: Path, make: Maker, name: str) -> None:
    """And left alone: it is none of ours. SQLite itself would wait for a pipe."""
    make(tmp_path / name)
    before = os.lstat(tmp_path / name)
    with (
        Database(tmp_path / "laneway.db") as database,
        pytest.raises(StoreError, match=rf"{name}: something of another kind"),
    ):
        put(database, "n", "1")
    assert os.path.samestat(os.lstat(tmp_path / name), before)


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """And the next one works; the mistake stays the caller's own."""

    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO meta VALUES ('a', '1')")
        connection.execute("INSERT INTO meta VALUES ('a', '2')")

    with Database(tmp_path / "db") as database:
        with pytest.raises(sqlite3.IntegrityError):
            database.write(half)
        assert database.meta("a") is None
        put(database, "a", "3")
        assert database.meta("a") == "3"


async def test_many_tasks_share_one_through_threads(tmp_path: Path) -> None:
    """Each piece of work is one transaction."""

    def add(connection: sqlite3.Connection) -> None:
        (now,) = connection.execute("SELECT coalesce(max(value), 0) FROM meta WHERE key = 'n'").fetchone()
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('n', ?)", (f"{int(now) + 1:04}",))

    with Database(tmp_path / "db") as database:
        async with asyncio.timeout(60):
            await asyncio.gather(*(asyncio.to_thread(database.write, add) for _ in range(100)))
        assert database.meta("n") == "0100"


def test_two_of_one_process_lose_nothing_when_another_process_leaves(tmp_path: Path) -> None:
    """Opening the second must not end the locks of the first: else who leaves takes the journal along."""
    path = tmp_path / "laneway.db"
    leave = f"""if True:
        from pathlib import Path
        from laneway.store.database import Database
        with Database(Path({str(path)!r})) as database:
            print(database.meta("word"))
    """
    with Database(path) as one, Database(path) as two:
        put(one, "word", "first")
        assert two.meta("word") == "first"
        for word in ("first", "second"):
            put(one, "word", word)
            ran = subprocess.run([sys.executable, "-c", leave], capture_output=True, text=True, check=True)
            assert ran.stdout == f"{word}\n"


def test_closing_twice_is_harmless_and_the_next_use_opens_it_again(tmp_path: Path) -> None:
    """What was written is there."""
    database = Database(tmp_path / "db")
    put(database, "a", "1")
    database.close()
    database.close()
    assert database.meta("a") == "1"
    database.close()


def test_an_older_file_is_brought_up_step_by_step_and_keeps_what_it_has(tmp_path: Path) -> None:
    """A step that fails leaves the step before it."""
    ran: list[str] = []

    def second(connection: sqlite3.Connection) -> None:
        ran.append("second")
        connection.execute("CREATE TABLE more (x)")

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        raise StoreError("It does not work.")

    def version(database: Database) -> int:
        return int(database.read(lambda c: c.execute("PRAGMA user_version").fetchone()[0]))

    path = tmp_path / "db"
    with Database(path) as database:
        put(database, "a", "1")
    with (
        Database(path, (*MIGRATIONS, second, broken)) as database,
        pytest.raises(StoreError, match="not work"),
    ):
        database.meta("a")
    with Database(path, (*MIGRATIONS, second)) as database:
        assert (database.meta("a"), version(database)) == ("1", len(MIGRATIONS) + 1)
        tables = database.read(
            lambda c: c.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        )
        assert ("half",) not in tables
        assert {("meta",), ("more",)} <= set(tables)
    assert ran == ["second"]


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    """To the byte, however often it is tried."""
    path = tmp_path / "db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = hashlib.sha256(path.read_bytes()).digest()
    with Database(path) as database:
        for _ in range(2):
            with pytest.raises(FileNewer, match=r"newer Laneway .* Update Laneway\.$"):
                database.meta("a")
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [".db.lock", "db"]


@pytest.mark.parametrize("content", [b"not a database " * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_kept_aside_and_reported(tmp_path: Path, content: bytes) -> None:
    """With its side files; a new one begins."""
    path = tmp_path / "db"
    path.write_bytes(content)
    (tmp_path / "db-wal").write_bytes(b"side")
    with Database(path) as database:
        put(database, "a", "1")
        (report,) = database.reports
        assert report.startswith(f"{path} is damaged")
        assert database.meta("a") == "1"
    aside = next(p for p in tmp_path.iterdir() if p.name.startswith("db.corrupt-"))
    assert aside.name in report
    assert aside.read_bytes() == content


def test_damage_inside_is_told_and_found_by_the_check(tmp_path: Path) -> None:
    """A page in the middle of the file; nothing is moved while it is in use."""
    path = tmp_path / "db"
    with Database(path) as database:
        for number in range(400):
            put(database, f"key {number}", "x" * 100)
    data = bytearray(path.read_bytes())
    data[4096:8192] = b"\xff" * 4096  # the first page is read when it is opened
    path.write_bytes(data)
    with Database(path) as database:
        with pytest.raises(FileDamaged, match="is damaged"):
            database.read(lambda c: c.execute("SELECT sum(length(value)) FROM meta").fetchall())
        assert database.check() == (f"{path} is damaged: SQLite cannot read it.",)
        assert database.reports == ()
    assert path.exists()


def test_the_check_says_what_sqlite_found(tmp_path: Path) -> None:
    """An index that does not fit its table harms no reader of the table."""
    path = tmp_path / "db"
    with Database(path) as database:
        put(database, "a", "1")
    data = bytearray(path.read_bytes())
    data[-4096:] = b"\xff" * 4096
    path.write_bytes(data)
    with Database(path) as database:
        assert len(database.check()) >= 1


def test_a_folder_in_its_place_is_told_in_a_sentence(tmp_path: Path) -> None:
    """And left alone."""
    (tmp_path / "db").mkdir()
    with Database(tmp_path / "db") as database, pytest.raises(StoreError, match="another kind"):
        database.meta("a")


def test_a_file_that_somebody_keeps_busy_is_told_in_a_sentence(tmp_path: Path) -> None:
    """Our patience is a setting of the connection; here it has none."""
    path = tmp_path / "db"
    with Database(path) as database, closing(sqlite3.connect(path, isolation_level=None)) as other:
        database.read(lambda c: c.execute("SELECT 1").fetchall())
        other.execute("BEGIN IMMEDIATE")
        database.read(lambda c: c.execute("PRAGMA busy_timeout = 0").fetchall())
        with pytest.raises(StoreError, match="busy"):
            put(database, "a", "1")
        other.execute("ROLLBACK")
        put(database, "a", "2")
        assert database.meta("a") == "2"


def test_only_what_may_be_undone_by_a_power_cut_is_written_without_waiting(tmp_path: Path) -> None:
    """And the next transaction waits for the disk again."""
    with Database(tmp_path / "db") as database:
        waits = [
            each(lambda c: c.execute("PRAGMA synchronous").fetchone()[0])
            for each in (database.write, database.write_soon, database.write, database.read)
        ]
    full, normal = 2, 1
    assert waits == [full, normal, full, full]
