"""All sessions that Laneway knows of on this machine: those of `mcp`, of `ask` and of editors.

Joins the stored records (registries, the files of `ask`, the editors' database), what live processes
say over their sockets, and Codex's own record of each thread. Changes none of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from laneway.base.errors import StoreError
from laneway.base.paths import state_home
from laneway.cli.ask.recent import MAX_BYTES, decode_ask_thread
from laneway.cli.session_names import short_id
from laneway.codex.locate import codex_home
from laneway.codex.thread_digest import ThreadDigest, ThreadDigests
from laneway.codex.thread_files import has_writer
from laneway.core.named.records import Status
from laneway.doors.local.scan import ask as ask_processes
from laneway.doors.local.shapes import LiveSessionInfo
from laneway.doors.local.socket_files import live_sockets
from laneway.store import stamps
from laneway.store.database import Database, database_path
from laneway.store.editor_sessions import EditorSessions
from laneway.store.files import read_whole
from laneway.store.listing import SessionRow
from laneway.store.store import Store

ANSWER_S = 2.0
"""For a process to say what its sessions do. One that is stopped must not delay the list for long: its
sessions are listed as they were last recorded."""

Source: TypeAlias = Literal["mcp", "ask", "editor"]
State: TypeAlias = Literal["idle", "working", "waits for you", "open", "stale", "closed", "interrupted"]
"""The state as people see it. `open`: an editor has it, and only the editor knows what it does."""


class KnownSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as `--json` prints it. Times are UTC."""

    source: Source
    name: str
    """Its identity; without one, the short form of its id."""
    agent_id: str | None = None
    thread_id: str | None = None
    session_id: str | None = None
    """The id that an editor knows it by."""
    identity: str | None = None
    team: str | None = None
    status: Status
    state: State
    open_questions: int = 0
    pid: int | None = None
    first_prompt: str | None = None
    turns: int | None = None
    tokens: int | None = None
    started_at: str = ""
    last_active: str = ""
    cwd: str | None = None
    branch: str | None = None
    repo_root: str | None = None
    repo_name: str | None = None
    tag: str | None = None
    role: str | None = None
    model: str | None = None

    @property
    def whole_id(self) -> str:
        return self.agent_id or self.session_id or self.thread_id or ""

    @property
    def active_at(self) -> datetime:
        return stamps.parse(self.last_active or self.started_at) or datetime.min.replace(tzinfo=UTC)


class SessionList(msgspec.Struct, frozen=True):
    """Sessions, the newest first, and what could not be read."""

    sessions: tuple[KnownSession, ...]
    problems: tuple[str, ...] = ()


def known_sessions(store: Store, *, with_others: bool) -> SessionList:
    """The team's sessions; `with_others` adds those of `ask` and of editors, which have no team."""
    stored = store.rows()
    problems = list(stored.problems)
    live = live_sessions() if any(row.status == "active" for row in stored.rows) else {}
    sessions = [of_row(row, live.get(row.agent_id)) for row in stored.rows]
    if with_others:
        sessions += ask_threads()
        sessions += editor_sessions(problems)
    ordered = sorted(sessions, key=lambda each: (each.active_at, each.whole_id), reverse=True)
    return SessionList(tuple(ordered), tuple(problems))


def live_sessions() -> dict[str, LiveSessionInfo]:
    """What live processes say about their sessions, by agent id. Processes that refuse are left out."""
    socket_files = live_sockets()
    if not socket_files:
        return {}
    scan = asyncio.run(ask_processes(socket_files, ANSWER_S))
    return {each.info.agent_id: each.info for each in scan.sessions}


def of_row(row: SessionRow, live: LiveSessionInfo | None) -> KnownSession:
    is_busy = (live.state if live else row.state) == "busy"
    state: State = row.status if row.status != "active" else "working" if is_busy else "idle"
    if row.status == "active" and live is not None and live.open_questions:
        state = "waits for you"
    if row.status != "active":
        live = None  # from an earlier run of the session
    return KnownSession(
        source="mcp",
        name=row.identity,
        agent_id=row.agent_id,
        thread_id=row.backend_id,
        identity=row.identity,
        team=row.team,
        status=row.status,
        state=state,
        open_questions=live.open_questions if live else 0,
        pid=live.pid if live else None,
        turns=live.turns if live else row.turns,
        tokens=live.tokens if live else row.tokens,
        started_at=row.started_at,
        last_active=max(row.last_active, live.last_active) if live else row.last_active,
        cwd=row.cwd,
        branch=row.branch,
        repo_root=row.repo_root,
        repo_name=row.repo_name,
        tag=row.tag,
        role=row.role,
        model=row.model,
    )


# ── sessions without a name ────────────────────────────────────────────────


def ask_threads() -> Iterator[KnownSession]:
    """The newest thread of `laneway ask` in each folder."""
    folder = state_home() / "ask"
    try:
        files = [folder / name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return
    for file in files:
        try:
            modified_s = file.stat().st_mtime
            data = read_whole(file, MAX_BYTES)
            record = decode_ask_thread(data) if data else None
        except (OSError, StoreError, msgspec.DecodeError, UnicodeDecodeError):
            continue  # `ask --last` says what is wrong with it
        if record is None:
            continue
        is_open = has_writer(Path(record.codex_home), record.thread_id)
        yield KnownSession(
            source="ask",
            name=short_id(record.thread_id),
            thread_id=record.thread_id,
            status="active" if is_open else "closed",
            state="working" if is_open else "closed",
            last_active=_stamp(modified_s),
            cwd=record.cwd,
        )


def editor_sessions(problems: list[str]) -> Iterator[KnownSession]:
    """The sessions of editors. What cannot be read is added to `problems`."""
    path = database_path()
    if not path.exists():
        return  # listing must not create a database
    try:
        with Database(path) as database:
            records = EditorSessions(database).latest()
            problems += database.reports
    except StoreError as problem:
        problems.append(str(problem))
        return
    home = Path(codex_home(os.environ))
    for record in records:
        is_open = has_writer(home, record.thread_id)
        yield KnownSession(
            source="editor",
            name=short_id(record.session_id),
            thread_id=record.thread_id,
            session_id=record.session_id,
            status="active" if is_open else "closed",
            state="open" if is_open else "closed",
            started_at=_stamp(record.created_at),
            last_active=_stamp(record.updated_at),
            cwd=record.cwd,
            model=record.defaults.model,
        )


def _stamp(seconds: float) -> str:
    try:
        return stamps.stamp(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return ""


# ── prompts, turns and tokens ──────────────────────────────────────────────


def with_digests(sessions: Iterable[KnownSession]) -> list[KnownSession]:
    """Add the first prompt, turns and tokens from Codex's own files. One file each: only for those shown."""
    digests = ThreadDigests(Path(codex_home(os.environ)))
    return [_with_digest(each, digests.read(each.thread_id) if each.thread_id else None) for each in sessions]


def _with_digest(session: KnownSession, digest: ThreadDigest | None) -> KnownSession:
    if digest is None:
        return session
    return msgspec.structs.replace(
        session,
        first_prompt=digest.first_prompt,
        turns=session.turns if session.turns is not None else digest.turns,
        tokens=session.tokens if session.tokens is not None else digest.tokens,
    )
