"""What an editor's sessions were set to, so that a restarted Laneway can go on with any of them.

One row a session in the shared SQLite file. The conversation itself is Codex's; here is only
what Codex does not keep: what the user chose, and which access the session had. No secrets:
what an editor says of MCP servers is never written. All calls block.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import StoreError
from laneway.store.database import Database
from laneway.store.stamps import Now, utc_now

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger(__name__)

MAX_RECORD_BYTES = 256 * 1024
"""A record takes under 1 KB, more with many folders; this is thousands of them, and a mistake."""
MAX_RECORDS = 10_000
"""Sessions that are remembered. Past it those untouched for longest go: they open as foreign ones do."""

_COLUMNS = "session_id, thread_id, cwd, created_at, updated_at, defaults, directories"


class Permit(msgspec.Struct, frozen=True, rename={"approval": "approvalPolicy", "sandbox": "sandboxPolicy"}):
    """What a session may do, in Codex's own words."""

    approval: Any = "on-request"
    sandbox: dict[str, Any] = {}
    profile: str | None = None
    """A permission profile of the user's own; the sandbox is then only what it comes to."""


class Defaults(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the user chose (none: nothing), and the access that came of it."""

    mode: str = "config"
    model: str | None = None
    effort: str | None = None
    personality: str | None = None
    summary: str | None = None
    network: bool | None = None
    is_set: bool = False
    """Whether a mode or the network was ever chosen."""
    approval_policy: Any = None
    sandbox_policy: dict[str, Any] | None = None
    permissions: str | None = None
    configured: Permit | None = None
    """What config.toml meant at the time."""
    sent: Permit | None = None
    """What Codex had last: from us, or by its own account."""
    empty_in: str | None = None
    """While nothing was said in it: the Codex home of its thread, which Codex has not written down yet."""

    @property
    def policy(self) -> Permit | None:
        """What the session was shown to have."""
        if self.sandbox_policy is None:
            return None
        return Permit(self.approval_policy, self.sandbox_policy, self.permissions)


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Times are seconds since 1970."""

    session_id: str
    thread_id: str
    cwd: str
    created_at: int = 0
    updated_at: int = 0
    defaults: Defaults = Defaults()
    directories: tuple[str, ...] = ()
    """Further folders that the editor opened the session with."""


class EditorSessions:
    def __init__(self, database: Database, now: Now = utc_now, max_records: int = MAX_RECORDS) -> None:
        self._database = database
        self._now = now
        self._max_records = max_records

    def get(self, session_id: str) -> SessionRecord | None:
        return self.many((session_id,)).get(session_id)

    def many(self, session_ids: Iterable[str]) -> dict[str, SessionRecord]:
        """Those that there are. One that cannot be read counts as none."""
        wanted = _json(list(session_ids))
        query = (
            f"SELECT {_COLUMNS} FROM editor_sessions JOIN json_each(?) AS wanted ON session_id = wanted.value"
        )
        rows = self._database.read(lambda c: c.execute(query, (wanted,)).fetchall())
        records = (_record(row) for row in rows)
        return {record.session_id: record for record in records if record is not None}

    def renamed(self, thread_ids: Iterable[str]) -> dict[str, str]:
        """The sessions of these threads, where a session has another thread than the one in its name."""
        query = (
            "SELECT thread_id, session_id FROM editor_sessions JOIN json_each(?) AS wanted"
            " ON thread_id = wanted.value WHERE session_id != 'sess_' || thread_id"
        )
        wanted = _json(list(thread_ids))
        return dict(self._database.read(lambda c: c.execute(query, (wanted,)).fetchall()))

    def empty(self, codex_home: str, age_s: int, limit: int, cwd: str | None = None) -> list[SessionRecord]:
        """Sessions that nothing was said in yet, in this Codex home and of this age; the newest first."""
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
        """All of them, those that were used last first."""
        query = f"SELECT {_COLUMNS} FROM editor_sessions ORDER BY updated_at DESC, rowid DESC LIMIT ?"
        rows = self._database.read(lambda c: c.execute(query, (limit,)).fetchall())
        return [record for record in map(_record, rows) if record is not None]

    def change_thread(self, session_id: str, old: str, new: str) -> bool:
        """Whether it was ours to give it another thread: of several who try at once, the first does."""
        return self._change(
            "UPDATE editor_sessions SET thread_id = ? WHERE session_id = ? AND thread_id = ?",
            new,
            session_id,
            old,
        )

    def put(self, record: SessionRecord) -> SessionRecord:
        """Keep it, in the place of what was there; as it stands now. The first one's birthday stays."""
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
            found = connection.execute(
                "SELECT created_at FROM editor_sessions WHERE session_id = ?", (record.session_id,)
            )
            return int(found.fetchone()[0])

        return msgspec.structs.replace(record, created_at=self._database.write(write), updated_at=now)

    def touch(self, session_id: str) -> bool:
        """It was used just now; whether there is such a one."""
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
            defaults=msgspec.json.decode(defaults, type=Defaults),
            directories=msgspec.json.decode(directories, type=tuple[str, ...]),
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
    """Folder names may hold bytes that are no text; the file cannot."""
    return value.encode("utf-8", "replace").decode()
