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


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (m001_meta, m002_editor_sessions)
