"""Migrations of the SQLite database, in order. Released ones are never changed; new ones go last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from laneway import __version__
from laneway.store.stamps import stamp, utc_now

if TYPE_CHECKING:
    import sqlite3


def m001_meta(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    facts = [("created_at", stamp(utc_now())), ("created_by", f"laneway {__version__}")]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", facts)


def m002_editor_sessions(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE editor_sessions (session_id TEXT PRIMARY KEY, thread_id TEXT NOT NULL,"
        " cwd TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,"
        " defaults TEXT NOT NULL, directories TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX editor_sessions_by_age ON editor_sessions (updated_at)")


def m003_jobs(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE jobs (number INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL UNIQUE,"
        " owner TEXT NOT NULL, mode TEXT NOT NULL, status TEXT NOT NULL, tree TEXT NOT NULL,"
        " run_id TEXT NOT NULL, priority INTEGER NOT NULL, after_job TEXT NOT NULL, cwd TEXT NOT NULL,"
        " node TEXT NOT NULL, title TEXT NOT NULL, facts TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0,"
        " thread_id TEXT NOT NULL DEFAULT '', activity TEXT NOT NULL DEFAULT '',"
        " tokens INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL, started_at REAL NOT NULL DEFAULT 0,"
        " ended_at REAL NOT NULL DEFAULT 0, ended_number INTEGER NOT NULL DEFAULT 0,"
        " failure TEXT NOT NULL DEFAULT '', is_inconsistent INTEGER NOT NULL DEFAULT 0)"
    )
    # Nearly all jobs have ended: what is asked all the time looks only at the others.
    connection.execute("CREATE INDEX jobs_unfinished ON jobs (status, number) WHERE ended_number = 0")
    connection.execute("CREATE INDEX jobs_ended ON jobs (ended_number) WHERE ended_number > 0")
    connection.execute("CREATE INDEX jobs_by_run ON jobs (run_id) WHERE run_id != ''")
    connection.execute(
        "CREATE TABLE runs (run_id TEXT PRIMARY KEY, tree TEXT NOT NULL, state TEXT NOT NULL,"
        " baseline TEXT NOT NULL, head TEXT NOT NULL, porcelain TEXT NOT NULL,"
        " created_at REAL NOT NULL, closed_at REAL NOT NULL DEFAULT 0)"
    )
    connection.execute("CREATE UNIQUE INDEX runs_open ON runs (tree) WHERE state = 'open'")
    connection.execute(
        "CREATE TABLE borders (number INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,"
        " at REAL NOT NULL, snapshot TEXT NOT NULL, active TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX borders_by_run ON borders (run_id)")
    connection.execute(
        "CREATE TABLE evidence (job_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, facts TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX evidence_by_run ON evidence (run_id)")
    connection.execute(
        "CREATE TABLE resolutions (run_id TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (run_id, path))"
    )
    connection.execute(
        "CREATE TABLE job_waits (task_id TEXT PRIMARY KEY, owner TEXT NOT NULL, tool TEXT NOT NULL,"
        " arguments TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL NOT NULL,"
        " is_cancelled INTEGER NOT NULL DEFAULT 0, result TEXT NOT NULL DEFAULT '')"
    )


def m004_remote_jobs(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE remote_jobs (job_id TEXT PRIMARY KEY, state TEXT NOT NULL,"
        " home TEXT NOT NULL DEFAULT '', cancel TEXT NOT NULL DEFAULT '',"
        " position INTEGER NOT NULL DEFAULT 0)"
    )


def m005_conversations(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE conversations (conversation_id TEXT PRIMARY KEY, cwd BLOB NOT NULL,"
        " default_lane TEXT NOT NULL, created_at REAL NOT NULL, used_at REAL NOT NULL,"
        " title TEXT NOT NULL, lane_threads TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX conversations_by_age ON conversations (used_at)")
    belongs = "conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE"
    connection.execute(f"CREATE TABLE chat_places (place_key TEXT PRIMARY KEY, {belongs})")
    connection.execute("CREATE INDEX chat_places_by_conversation ON chat_places (conversation_id)")
    connection.execute(
        f"CREATE TABLE chat_inputs (input_id INTEGER PRIMARY KEY AUTOINCREMENT, {belongs},"
        " place_key TEXT NOT NULL, message_id TEXT NOT NULL, at REAL NOT NULL, state TEXT NOT NULL,"
        " lane TEXT NOT NULL DEFAULT '', ticket TEXT NOT NULL DEFAULT '', message BLOB NOT NULL,"
        " UNIQUE (place_key, message_id))"
    )
    # Nearly all messages are over: what is asked at every start looks only at the others.
    connection.execute("CREATE INDEX chat_inputs_by_state ON chat_inputs (conversation_id, state)")
    connection.execute(
        f"CREATE TABLE hand_backs (hand_back_id INTEGER PRIMARY KEY AUTOINCREMENT, {belongs},"
        " for_lane TEXT NOT NULL, at REAL NOT NULL, block BLOB NOT NULL, ticket TEXT NOT NULL DEFAULT '')"
    )
    connection.execute("CREATE INDEX hand_backs_by_lane ON hand_backs (conversation_id, for_lane)")
    connection.execute(
        f"CREATE TABLE chat_questions ({belongs}, number INTEGER NOT NULL, lane TEXT NOT NULL,"
        " ticket TEXT NOT NULL, is_open INTEGER NOT NULL, PRIMARY KEY (conversation_id, number))"
    )
    connection.execute(
        f"CREATE TABLE chat_outputs ({belongs}, number INTEGER NOT NULL, at REAL NOT NULL,"
        " output BLOB NOT NULL, UNIQUE (conversation_id, number))"
    )
    connection.execute(
        "CREATE TABLE chat_deliveries (delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " place_key TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL, is_sent INTEGER NOT NULL DEFAULT 0,"
        " ref TEXT NOT NULL DEFAULT '', content BLOB NOT NULL, UNIQUE (place_key, key))"
    )
    connection.execute("CREATE INDEX chat_deliveries_unsent ON chat_deliveries (place_key) WHERE NOT is_sent")
    connection.execute("CREATE INDEX chat_deliveries_by_ref ON chat_deliveries (place_key, ref)")
    connection.execute("CREATE TABLE chat_cursors (name TEXT PRIMARY KEY, value TEXT NOT NULL)")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    m001_meta,
    m002_editor_sessions,
    m003_jobs,
    m004_remote_jobs,
    m005_conversations,
)
