"""Rows of `agent_sessions` and the health report of `agent_status`, as values. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from laneway.core.named.paging import PagePosition, cursor_after, position_of
from laneway.core.named.records import Record
from laneway.core.named.session import NamedSession

MAX_PAGE_BYTES = 64 * 1024
"""Of one page as JSON, because a model reads it and pays for it. A page has at least one row."""
MAX_PROBLEMS = 20
"""Files that a page names because they cannot be read; the others are counted."""


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session, live or recorded. Some fields have two names, for older clients."""

    agent_id: str
    backend: str
    """The engine's key."""
    backend_id: str | None
    thread_id: str | None
    team: str
    identity: str
    agent_name: str | None
    agent_source: str | None
    status: str
    state: str
    """`busy`, `idle` or `closed`."""
    last_active: str
    last_active_at: str
    tag: str | None
    role: str | None
    cwd: str | None
    repo_root: str | None
    repo_name: str | None
    branch: str | None
    resumable: bool
    turns: int
    tokens: int
    dropped_events: int = 0
    is_mine: bool = False
    """Whether it is live in this process and belongs to the caller."""


class SessionPage(msgspec.Struct, frozen=True):
    """One page of the list of sessions."""

    rows: tuple[ListedSession, ...]
    problems: tuple[str, ...] = ()
    total: int = 0
    """Sessions that match the filters, on all pages."""
    cursor: str | None = None
    """Of the next page; none on the last one."""


class BoundIdentity(msgspec.Struct, frozen=True):
    agent_id: str
    thread_id: str
    state: str


class EngineHealth(msgspec.Struct, frozen=True):
    """An engine in use. Where each thread has its own process, it is alive if one of them is."""

    backend: str
    alive: bool
    ended: str | None
    active: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the default engine and of this process, for `agent_status`."""

    child_alive: bool
    child_ended: str | None
    """How it ended, if it did so by itself: an exit code or a signal's name, in words."""
    child_pid: int | None
    team: str
    uptime_s: float
    active: int
    limit: int
    identities: dict[str, BoundIdentity]
    pending_mail: int = 0
    engines: tuple[EngineHealth, ...] = ()
    """The engines in use besides the one that the fields above tell about."""


def row(record: Record, live: NamedSession | None = None, *, is_mine: bool = False) -> ListedSession:
    state = record.state if record.status == "active" else "closed"
    return ListedSession(
        agent_id=record.agent_id,
        backend=record.backend,
        backend_id=record.thread_id,
        thread_id=record.thread_id,
        team=record.team,
        identity=record.identity,
        agent_name=record.agent_name,
        agent_source=record.agent_source,
        status=record.status,
        state=live.state if live else state,
        last_active=record.last_active,
        last_active_at=record.last_active,
        tag=record.tag,
        role=record.role,
        cwd=record.cwd,
        repo_root=record.repo_root,
        repo_name=record.repo_name,
        branch=record.branch,
        resumable=record.is_resumable,
        turns=record.turns,
        tokens=record.tokens,
        dropped_events=live.session.lost_events if live else 0,
        is_mine=is_mine,
    )


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions to list."""

    identity: str | None = None
    repo_root: str | None = None
    include_closed: bool = True

    def let_through(self, record: Record) -> bool:
        return (
            self.identity in (None, record.identity)
            and self.repo_root in (None, record.repo_root)
            and (self.include_closed or record.status == "active")
        )


def page(
    kept: Iterable[Record],
    live: dict[str, NamedSession],
    principal: str,
    filters: Filters,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    problems: tuple[str, ...] = (),
) -> SessionPage:
    """One page: live sessions in their current state, then the others; the most recently active first.

    Without a `limit` all rows. `BadCursor` for a cursor that does not belong to these filters.
    """
    last_row = position_of(cursor, filters) if cursor is not None else None
    records = {record.agent_id: record for record in kept}
    records |= {agent_id: named.record for agent_id, named in live.items()}
    matching = {_position(record): record for record in records.values() if filters.let_through(record)}
    following = sorted(
        (position for position in matching if last_row is None or position < last_row), reverse=True
    )
    rows: list[ListedSession] = []
    size = 0
    for position in following if limit is None else following[:limit]:
        record = matching[position]
        row = _row(record, live.get(record.agent_id), principal)
        size += len(msgspec.json.encode(row)) if limit is not None else 0
        if rows and size > MAX_PAGE_BYTES:
            break
        rows.append(row)
    is_last = len(rows) == len(following)
    return SessionPage(
        tuple(rows),
        _few(problems) if limit is not None else problems,
        len(matching),
        None if is_last else cursor_after(following[len(rows) - 1], filters),
    )


def _position(record: Record) -> PagePosition:
    return PagePosition(record.status == "active", record.last_active, record.agent_id)


def _few(problems: tuple[str, ...]) -> tuple[str, ...]:
    more = len(problems) - MAX_PROBLEMS
    if more <= 0:
        return problems
    return (*problems[:MAX_PROBLEMS], f"{more} more files could not be read: see `laneway sessions`.")


def _row(record: Record, live: NamedSession | None, principal: str) -> ListedSession:
    return row(record, live, is_mine=live is not None and live.principal == principal)
