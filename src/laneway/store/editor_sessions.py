"""The records of an editor's sessions on disk: one row per session in the shared SQLite file.

What a record holds is said in `laneway.core.editor_sessions`. All calls block.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import StoreError
from laneway.core.editor_sessions import Defaults, SessionRecord
from laneway.store.database import Database
from laneway.store.stamps import Now, utc_now

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger(__name__)

MAX_RECORD_BYTES = 256 * 1024
"""A record takes under 1 KB, more with many folders; a record of this size has thousands, by mistake."""
MAX_RECORDS = 10_000
"""More are deleted, the least recently used first: such a session opens like one of another program."""

_COLUMNS = "session_id, thread_id, cwd, created_at, updated_at, defaults, directories"


_decode_defaults = msgspec.json.Decoder(Defaults).decode
_decode_directories = msgspec.json.Decoder(tuple[str, ...]).decode


class EditorSessions:
    """The table of editor sessions."""

    def __init__(self, database: Database, now: Now = utc_now, max_records: int = MAX_RECORDS) -> None:
        self._database = database
        self._now = now
        self._max_records = max_records

    def get(self, session_id: str) -> SessionRecord | None:
        return self.many((session_id,)).get(session_id)

    def many(self, session_ids: Iterable[str]) -> dict[str, SessionRecord]:
        """The records of these sessions, where there are any. One that cannot be read is left out."""
        session_ids_json = _json(list(session_ids))
        query = f"SELECT {_COLUMNS} FROM editor_sessions JOIN json_each(?) AS ids ON session_id = ids.value"
        rows = self._database.read(lambda c: c.execute(query, (session_ids_json,)).fetchall())
        records = (_record(row) for row in rows)
        return {record.session_id: record for record in records if record is not None}

    def renamed(self, thread_ids: Iterable[str]) -> dict[str, str]:
        """By thread id, the sessions whose id names another thread than the one they have now."""
        query = (
            "SELECT thread_id, session_id FROM editor_sessions JOIN json_each(?) AS ids"
            " ON thread_id = ids.value WHERE session_id != 'sess_' || thread_id"
        )
        thread_ids_json = _json(list(thread_ids))
        return dict(self._database.read(lambda c: c.execute(query, (thread_ids_json,)).fetchall()))

    def empty(self, codex_home: str, age_s: int, limit: int, cwd: str | None = None) -> list[SessionRecord]:
        """Sessions without input so far in this Codex home, not older than this; the newest first."""
        query = (
            f"SELECT {_COLUMNS} FROM editor_sessions WHERE updated_at > ? AND (? IS NULL OR cwd = ?)"
            " AND CASE WHEN json_valid(defaults) THEN json_extract(defaults, '$.emptyIn') END = ?"
            " ORDER BY updated_at DESC, rowid DESC LIMIT ?"
        )
        folder = None if cwd is None else _text(cwd)
        values = (self._seconds() - age_s, folder, folder, _text(codex_home), limit)
        rows = self._database.read(lambda c: c.execute(query, values).fetchall())
        return [record for record in map(_record, rows) if record is not None]

    def latest(self, limit: int = MAX_RECORDS) -> list[SessionRecord]:
        """All records, the most recently used first."""
        query = f"SELECT {_COLUMNS} FROM editor_sessions ORDER BY updated_at DESC, rowid DESC LIMIT ?"
        rows = self._database.read(lambda c: c.execute(query, (limit,)).fetchall())
        return [record for record in map(_record, rows) if record is not None]

    def change_thread(self, session_id: str, old: str, new: str) -> bool:
        """Give a session another thread. Of several concurrent callers only the first succeeds."""
        return self._change(
            "UPDATE editor_sessions SET thread_id = ? WHERE session_id = ? AND thread_id = ?",
            new,
            session_id,
            old,
        )

    def put(self, record: SessionRecord) -> SessionRecord:
        """Insert or replace a record, keeping its first `created_at`. Returns it with its times."""
        now = self._seconds()
        defaults, directories = _json(record.defaults), _json(record.directories)
        if len(defaults) + len(directories) + len(record.cwd) > MAX_RECORD_BYTES:
            raise StoreError(f"What session {record.session_id} is set to is longer than Laneway keeps.")
        row = (record.session_id, record.thread_id, _text(record.cwd), now, now, defaults, directories)

        def write(connection: sqlite3.Connection) -> int:
            connection.execute(
                f"INSERT INTO editor_sessions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (session_id) DO UPDATE SET thread_id = excluded.thread_id, cwd = excluded.cwd,"
                " updated_at = excluded.updated_at, defaults = excluded.defaults,"
                " directories = excluded.directories",
                row,
            )
            connection.execute(
                "DELETE FROM editor_sessions WHERE session_id IN (SELECT session_id FROM editor_sessions"
                " WHERE session_id != ? ORDER BY updated_at DESC, rowid DESC LIMIT -1 OFFSET ?)",
                (record.session_id, self._max_records - 1),
            )
            cursor = connection.execute(
                "SELECT created_at FROM editor_sessions WHERE session_id = ?", (record.session_id,)
            )
            return int(cursor.fetchone()[0])

        return msgspec.structs.replace(record, created_at=self._database.write(write), updated_at=now)

    def touch(self, session_id: str) -> bool:
        """Note that a session was used just now. Returns whether there is such a session."""
        return self._change(
            "UPDATE editor_sessions SET updated_at = ? WHERE session_id = ?", self._seconds(), session_id
        )

    def delete(self, session_id: str) -> bool:
        return self._change("DELETE FROM editor_sessions WHERE session_id = ?", session_id)

    def _change(self, statement: str, *values: Any) -> bool:
        return self._database.write(lambda c: c.execute(statement, values).rowcount > 0)

    def _seconds(self) -> int:
        return int(self._now().timestamp())


def _record(row: tuple[Any, ...]) -> SessionRecord | None:
    session_id, thread_id, cwd, created_at, updated_at, defaults, directories = row
    try:
        return SessionRecord(
            session_id=session_id,
            thread_id=thread_id,
            cwd=cwd,
            created_at=created_at,
            updated_at=updated_at,
            defaults=_decode_defaults(defaults),
            directories=_decode_directories(directories),
        )
    except (msgspec.DecodeError, RecursionError):
        log.warning("what session %s was set to cannot be read; it opens as a foreign one", session_id)
        return None


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, TypeError, RecursionError) as problem:
        raise StoreError("What a session is set to holds something that is no JSON.") from problem


def _text(value: str) -> str:
    """Folder names may contain bytes that are no text; SQLite's texts cannot."""
    return value.encode("utf-8", "replace").decode()
