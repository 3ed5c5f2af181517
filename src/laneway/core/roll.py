"""Who is there: the rows of `agent_sessions` and the health of `agent_status`, as values. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from laneway.core.colleague import Colleague
from laneway.core.paging import Place, cursor_after, place_of
from laneway.core.records import Record

MAX_PAGE_BYTES = 64 * 1024
"""Of one page as JSON, whatever its rows hold: a model reads it, and pays for it. One row is always shown."""
MAX_PROBLEMS = 20
"""Files that a page names because they cannot be read; the others are counted."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One session, live or kept, under both names where the seeds differ."""

    agent_id: str
    backend: str = "codex"
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
    """Live here, and the caller's."""


class Roll(msgspec.Struct, frozen=True):
    rows: tuple[Row, ...]
    problems: tuple[str, ...] = ()
    total: int = 0
    """Sessions that the filters let through, on all pages."""
    cursor: str | None = None
    """To the next page; none on the last one."""


class Bound(msgspec.Struct, frozen=True):
    agent_id: str
    thread_id: str
    state: str


class Health(msgspec.Struct, frozen=True, kw_only=True):
    child_alive: bool
    child_ended: str | None
    """How it ended, if it did so by itself: an exit code or a signal's name, in words."""
    child_pid: int | None
    team: str
    uptime_s: float
    active: int
    limit: int
    identities: dict[str, Bound]
    pending_mail: int = 0


def row(record: Record, live: Colleague | None = None, *, is_mine: bool = False) -> Row:
    state = record.state if record.status == "active" else "closed"
    return Row(
        agent_id=record.agent_id,
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
    """Which sessions are meant."""

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
    live: dict[str, Colleague],
    principal: str,
    filters: Filters,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    problems: tuple[str, ...] = (),
) -> Roll:
    """Live ones as they are now, whatever the disk says, then the others; the most recently active first.

    Without a `limit` it is all of them. `BadCursor` for a cursor that does not belong to these filters.
    """
    last = place_of(cursor, filters) if cursor is not None else None
    records = {record.agent_id: record for record in kept}
    records |= {agent_id: colleague.record for agent_id, colleague in live.items()}
    wanted = {_place(record): record for record in records.values() if filters.let_through(record)}
    behind = sorted((place for place in wanted if last is None or place < last), reverse=True)
    shown: list[Row] = []
    size = 0
    for place in behind if limit is None else behind[:limit]:
        record = wanted[place]
        row = _row(record, live.get(record.agent_id), principal)
        size += len(msgspec.json.encode(row)) if limit is not None else 0
        if shown and size > MAX_PAGE_BYTES:
            break
        shown.append(row)
    is_last = len(shown) == len(behind)
    return Roll(
        tuple(shown),
        _few(problems) if limit is not None else problems,
        len(wanted),
        None if is_last else cursor_after(behind[len(shown) - 1], filters),
    )


def _place(record: Record) -> Place:
    return Place(record.status == "active", record.last_active, record.agent_id)


def _few(problems: tuple[str, ...]) -> tuple[str, ...]:
    more = len(problems) - MAX_PROBLEMS
    if more <= 0:
        return problems
    return (*problems[:MAX_PROBLEMS], f"{more} more files could not be read: see `laneway sessions`.")


def _row(record: Record, live: Colleague | None, principal: str) -> Row:
    return row(record, live, is_mine=live is not None and live.principal == principal)
