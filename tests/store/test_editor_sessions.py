"""What editors' sessions are set to, kept in the shared file."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from laneway.base.errors import FileNewer, StoreError
from laneway.core.access import Permit
from laneway.core.editor_sessions import Defaults, SessionRecord
from laneway.store import editor_sessions
from laneway.store.database import Database
from laneway.store.editor_sessions import EditorSessions
from laneway.store.migrations import MIGRATIONS, m001_meta
from tests.store.support import WallClock

NOON = 1771416000
FULL = Permit("never", {"type": "dangerFullAccess"})
DEFAULTS = Defaults(
    mode="ask",
    model="gpt-5.5",
    effort="medium",
    personality="friendly",
    summary="concise",
    network=True,
    is_set=True,
    approval_policy="untrusted",
    sandbox_policy={"type": "workspaceWrite", "writableRoots": ["/p"], "networkAccess": True},
    configured=FULL,
    sent=Permit({"granular": {"rules": True}}, {"type": "readOnly"}, "mine"),
)


def record(name: str = "a", **fields: object) -> SessionRecord:
    base = SessionRecord(session_id=f"sess_{name}", thread_id=name, cwd="/päth", directories=("/x", "/y"))
    return msgspec.structs.replace(base, **fields)


def test_what_was_put_is_there_in_another_process(tmp_path: Path) -> None:
    """All of it, and nothing of a session that nobody put."""
    path = tmp_path / "db"
    with Database(path) as database:
        put = EditorSessions(database, WallClock()).put(record(defaults=DEFAULTS))
        assert put == record(defaults=DEFAULTS, created_at=NOON, updated_at=NOON)
    code = """
import sys, pathlib, msgspec
from laneway.store.database import Database
from laneway.store.editor_sessions import EditorSessions
with Database(pathlib.Path(sys.argv[1])) as database:
    sessions = EditorSessions(database)
    assert sessions.get("sess_b") is None
    sys.stdout.buffer.write(msgspec.json.encode(sessions.get("sess_a")))
"""
    told = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=True)
    assert msgspec.json.decode(told.stdout, type=SessionRecord) == put
    assert put.defaults.policy == Permit("untrusted", DEFAULTS.sandbox_policy or {})


def test_the_record_has_the_names_of_the_seed() -> None:
    """What nobody chose is left out."""
    written = msgspec.json.decode(msgspec.json.encode(record(defaults=DEFAULTS)))
    assert set(written) == {
        "sessionId",
        "threadId",
        "cwd",
        "createdAt",
        "updatedAt",
        "defaults",
        "directories",
    }
    assert {"mode", "model", "effort", "personality", "approvalPolicy", "sandboxPolicy"} <= set(
        written["defaults"]
    )
    assert written["defaults"]["configured"]["sandboxPolicy"] == {"type": "dangerFullAccess"}
    assert msgspec.json.encode(Defaults()) == b"{}"
    assert Defaults().policy is None


def test_putting_it_again_replaces_it_and_keeps_its_birthday(tmp_path: Path) -> None:
    """Also from another instance; touching it only says that it was used."""
    clock = WallClock()
    with Database(tmp_path / "db") as one, Database(tmp_path / "db") as other:
        EditorSessions(one, clock).put(record(defaults=DEFAULTS))
        clock.move(seconds=5)
        EditorSessions(other, clock).put(record(cwd="/new", directories=()))
        sessions = EditorSessions(one, clock)
        assert sessions.get("sess_a") == record(
            cwd="/new", directories=(), created_at=NOON, updated_at=NOON + 5
        )
        clock.move(seconds=5)
        assert sessions.touch("sess_a")
        assert not sessions.touch("sess_b")
        touched = EditorSessions(other).get("sess_a")
        assert touched is not None
        assert (touched.cwd, touched.created_at, touched.updated_at) == ("/new", NOON, NOON + 10)


def test_many_are_fetched_at_once_and_one_is_deleted(tmp_path: Path) -> None:
    """Those that there are, whatever their ids look like."""
    odd = "'; DROP TABLE editor_sessions; --"
    with Database(tmp_path / "db") as database:
        sessions = EditorSessions(database)
        for name in ("a", "b", odd):
            sessions.put(record(name))
        assert set(sessions.many(["sess_a", f"sess_{odd}", "sess_none"])) == {"sess_a", f"sess_{odd}"}
        assert sessions.many([]) == {}
        assert sessions.delete("sess_a")
        assert not sessions.delete("sess_a")
        assert sessions.get("sess_a") is None
        assert sessions.get("sess_b") is not None


def test_those_that_nothing_was_said_in_are_found_by_home_folder_and_age(tmp_path: Path) -> None:
    """The newest first, no more than asked for; a row that cannot be read is in nobody's way."""
    clock = WallClock()
    with Database(tmp_path / "db") as database:
        sessions = EditorSessions(database, clock)
        sessions.put(record("old", defaults=Defaults(empty_in="/home")))
        clock.move(seconds=100)
        sessions.put(record("spoken"))
        sessions.put(record("damaged"))
        database.write(
            lambda c: c.execute("UPDATE editor_sessions SET defaults = '{' WHERE thread_id = 'damaged'")
        )
        sessions.put(record("elsewhere", defaults=Defaults(empty_in="/other")))
        for name in ("a", "b", "c"):
            cwd = "/x" if name == "b" else "/päth"
            sessions.put(record(name, cwd=cwd, defaults=Defaults(empty_in="/home")))

        def found(age_s: int, limit: int, cwd: str | None = None) -> list[str]:
            return [each.thread_id for each in sessions.empty("/home", age_s, limit, cwd)]

        assert found(50, 10) == ["c", "b", "a"]
        assert found(50, 2) == ["c", "b"]
        assert found(50, 10, "/päth") == ["c", "a"]
        assert found(101, 10) == ["c", "b", "a", "old"]
        sessions.put(record("c"))
        assert found(50, 10) == ["b", "a"]


def test_of_several_who_give_it_another_thread_the_first_does(tmp_path: Path) -> None:
    """The others see that it has another than they thought."""
    with Database(tmp_path / "db") as one, Database(tmp_path / "db") as other:
        EditorSessions(one).put(record())
        assert EditorSessions(one).change_thread("sess_a", "a", "mine")
        assert not EditorSessions(other).change_thread("sess_a", "a", "yours")
        assert not EditorSessions(other).change_thread("sess_b", "a", "yours")
        kept = EditorSessions(other).get("sess_a")
        assert kept is not None
        assert kept.thread_id == "mine"


def test_two_processes_write_side_by_side(tmp_path: Path) -> None:
    """Each its own sessions, and one that both have: none is lost, the shared one is whole."""
    path = tmp_path / "db"
    code = """
import sys, pathlib
from laneway.store.database import Database
from laneway.core.editor_sessions import Defaults, SessionRecord
from laneway.store.editor_sessions import EditorSessions
path, name = sys.argv[1:]
sys.stdin.readline()
with Database(pathlib.Path(path)) as database:
    sessions = EditorSessions(database)
    for number in range(50):
        for session_id in (f"{name}{number}", "shared"):
            sessions.put(SessionRecord(session_id=session_id, thread_id=name, cwd="/" + name,
                                       defaults=Defaults(model=name)))
"""
    names = ("one", "two")
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name], stdin=subprocess.PIPE)
        for name in names
    ]
    try:
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(b"\n")
            worker.stdin.close()
        assert [worker.wait(60) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    with Database(path) as database:
        sessions = EditorSessions(database)
        assert len(sessions.many(f"{name}{number}" for name in names for number in range(50))) == 100
        shared = sessions.get("shared")
    assert shared is not None
    assert (shared.cwd, shared.defaults.model) in (("/one", "one"), ("/two", "two"))


async def test_threads_share_one(tmp_path: Path) -> None:
    """As the door calls it."""
    with Database(tmp_path / "db") as database:
        sessions = EditorSessions(database)
        async with asyncio.timeout(60):
            await asyncio.gather(
                *(asyncio.to_thread(sessions.put, record(str(number))) for number in range(40))
            )
        assert len(sessions.many(f"sess_{number}" for number in range(40))) == 40


def test_a_file_of_the_version_before_is_brought_up(tmp_path: Path) -> None:
    """With what it holds."""
    with Database(tmp_path / "db", (m001_meta,)) as old:
        born = old.meta("created_at")
    with Database(tmp_path / "db") as database:
        EditorSessions(database).put(record())
        assert database.meta("created_at") == born


def test_a_newer_file_is_refused_and_a_damaged_one_kept_aside(tmp_path: Path) -> None:
    """As for all that lies in it; sessions then begin anew."""
    newer, damaged = tmp_path / "newer", tmp_path / "damaged"
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with Database(newer) as database, pytest.raises(FileNewer, match="Update Laneway"):
        EditorSessions(database).put(record())
    damaged.write_bytes(b"not a database " * 100)
    with Database(damaged) as database:
        assert EditorSessions(database).get("sess_a") is None
        assert len(database.reports) == 1
        EditorSessions(database).put(record())


@pytest.mark.parametrize("column", ["defaults", "directories"])
def test_a_row_that_cannot_be_read_counts_as_none(
    tmp_path: Path, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The session then opens as one that others started; putting it again heals the row."""
    with Database(tmp_path / "db") as database:
        sessions = EditorSessions(database)
        sessions.put(record())
        sessions.put(record("b"))
        database.write(
            lambda c: c.execute(f"UPDATE editor_sessions SET {column} = '{{\"mode\":1' WHERE thread_id = 'a'")
        )
        assert set(sessions.many(["sess_a", "sess_b"])) == {"sess_b"}
        assert "sess_a" in caplog.text
        sessions.put(record())
        assert sessions.get("sess_a") is not None


def test_what_cannot_be_kept_is_refused_and_what_was_stays(tmp_path: Path) -> None:
    """Too long, or no JSON; a folder's odd bytes are only replaced."""
    with Database(tmp_path / "db") as database:
        sessions = EditorSessions(database)
        kept = sessions.put(record())
        with pytest.raises(StoreError, match="longer than Laneway keeps"):
            sessions.put(record(directories=("/" + "x" * editor_sessions.MAX_RECORD_BYTES,)))
        with pytest.raises(StoreError, match="no JSON"):
            sessions.put(record(defaults=Defaults(approval_policy=object())))
        assert sessions.get("sess_a") == kept
        sessions.put(record("odd", cwd="/\udcff"))
        odd = sessions.get("sess_odd")
        assert odd is not None
        assert odd.cwd == "/?"


def test_those_untouched_for_longest_go_when_there_are_too_many(tmp_path: Path) -> None:
    """Never the one that is just put."""
    clock = WallClock()
    with Database(tmp_path / "db") as database:
        sessions = EditorSessions(database, clock, max_records=3)
        for name in "abc":
            sessions.put(record(name))
            clock.move(seconds=1)
        sessions.touch("sess_a")
        clock.move(seconds=-60)
        sessions.put(record("d"))
        assert set(sessions.many(f"sess_{name}" for name in "abcd")) == {"sess_a", "sess_c", "sess_d"}


def test_a_session_with_another_thread_than_its_name_says_is_found_by_it(tmp_path: Path) -> None:
    """The first was lost while it was empty; all others go by their names."""
    with Database(tmp_path / "db") as database:
        sessions = EditorSessions(database, WallClock())
        sessions.put(record("a"))
        sessions.put(record("b"))
        sessions.put(record("b", thread_id="new"))
        assert sessions.renamed(["a", "b", "new", "none"]) == {"new": "sess_b"}
