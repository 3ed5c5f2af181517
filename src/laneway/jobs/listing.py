"""Lists of jobs: filters, pages, slots in use and tokens. Blocking."""

from __future__ import annotations

import time
from typing import get_args

import msgspec

from laneway.base.errors import BadCursor, UsageError
from laneway.base.plain import code_label
from laneway.base.prepare import prepare
from laneway.jobs.ledger import MAX_LISTED, Totals
from laneway.jobs.model import UNFINISHED, Job, Status
from laneway.jobs.rules import count
from laneway.jobs.service import LOCAL, Jobs

PAGE = 50
DAYS = 7
"""Of which the tokens are told day by day."""
MAX_DIGITS = 18
"""Of a job's number: SQLite has none with more."""


@prepare
class JobFilter(msgspec.Struct, frozen=True):
    """The arguments of `codex_list`."""

    status: str | None = None
    tag: str | None = None
    run: str | None = None
    limit: int = PAGE
    cursor: str | None = None


class JobPage(msgspec.Struct, frozen=True):
    jobs: tuple[Job, ...]
    next_cursor: str | None
    slots: dict[str, str]
    """In use and in all, such as `2/8`; of queued jobs, how many."""
    totals: Totals


def listed(jobs: Jobs, owner: str, wanted: JobFilter) -> JobPage:
    """The newest first."""
    whose = None if owner == LOCAL else owner
    limit = min(wanted.limit, MAX_LISTED)
    rows = jobs.ledger.listed(
        whose,
        statuses=_statuses(wanted.status),
        tag=wanted.tag,
        run_id=wanted.run,
        before=_before(wanted.cursor),
        limit=limit + 1,
    )
    page = tuple(rows[:limit])
    next_cursor = f"n{page[-1].number}" if len(rows) > limit else None
    active, limits = jobs.ledger.active(), jobs.limits
    slots = {
        "read": f"{count(active, 'read')}/{limits.read}",
        "write": f"{count(active, 'write')}/{limits.write}",
        "total": f"{len(active)}/{limits.total}",
        "queued": str(jobs.ledger.queued_count()),
    }
    now = jobs.ledger.now()
    totals = jobs.ledger.totals(whose, _midnight(now), _midnight(now, days_ago=DAYS - 1))
    return JobPage(page, next_cursor, slots, totals)


def _statuses(named: str | None) -> tuple[Status, ...]:
    if named is None:
        return ()
    if named == "unfinished":
        return UNFINISHED
    known: tuple[Status, ...] = get_args(Status)
    if named not in known:
        raise UsageError(
            f"There is no status {code_label(named)}: use one of {', '.join(known)} or unfinished."
        )
    return (named,)


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    number = cursor[1:]
    if not (cursor.startswith("n") and number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS):
        raise BadCursor
    return int(number)


def _midnight(now: float, *, days_ago: int = 0) -> float:
    """The beginning of the user's day, or of an earlier one: not all days have 24 hours."""
    local = time.localtime(now)
    return time.mktime((local.tm_year, local.tm_mon, local.tm_mday - days_ago, 0, 0, 0, 0, 0, -1))
