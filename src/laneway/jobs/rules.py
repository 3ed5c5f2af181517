"""Decisions about jobs as pure functions: which may start, whether to try again, which scopes intersect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from laneway.jobs.model import Job, JobLimits, Mode, Status

Waits: TypeAlias = Literal["capacity", "total", "scope", "after", "rollback"]
"""Why a queued job does not start."""

_GLOB = "*?["


class QueueDecision(msgspec.Struct, frozen=True):
    """What the dispatcher does with the queue."""

    start: tuple[Job, ...]
    """In this order."""
    waits: dict[str, Waits]
    """By job id, why each of the others waits."""


def decide(
    queued: Iterable[Job],
    active: Sequence[Job],
    limits: JobLimits,
    *,
    busy_trees: Collection[str] = (),
) -> QueueDecision:
    """Which queued jobs start now: by priority, then by age. A job that must wait holds up no other one.

    `active` has the jobs with a supervisor. `busy_trees` are trees that are being rolled back.
    """
    running = list(active)
    unfinished = {job.job_id for job in running}
    queue = sorted(queued, key=lambda job: (-job.priority, job.number))
    unfinished |= {job.job_id for job in queue}
    start: list[Job] = []
    waits: dict[str, Waits] = {}
    for place, job in enumerate(queue):
        why = _waits(job, running, limits, unfinished, busy_trees) or _behind(job, queue[:place], start)
        if why is None:
            start.append(job)
            running.append(job)
        else:
            waits[job.job_id] = why
    return QueueDecision(tuple(start), waits)


def has_room(modes: Collection[Mode], active: Sequence[Job], limits: JobLimits) -> bool:
    """Whether `decide` could start any queued job of these modes. If not, the queue need not be read."""
    return len(active) < limits.total and any(count(active, mode) < limits.of(mode) for mode in modes)


def _waits(
    job: Job,
    running: Sequence[Job],
    limits: JobLimits,
    unfinished: Collection[str],
    busy_trees: Collection[str],
) -> Waits | None:
    if job.after and job.after in unfinished:
        return "after"
    if any(share_thread(other, job) for other in running):
        return "after"
    if len(running) >= limits.total:
        return "total"
    if count(running, job.mode) >= limits.of(job.mode):
        return "capacity"
    if job.tree and any(job.tree == tree or is_nested(job.tree, tree) for tree in busy_trees):
        return "rollback"
    if any(blocks(other, job) for other in running):
        return "scope"
    return None


def _behind(job: Job, earlier: Sequence[Job], start: Sequence[Job]) -> Waits | None:
    """Whether an earlier job that still waits would be overtaken in its own scope, again and again."""
    waiting = (other for other in earlier if other not in start)
    return "scope" if any(blocks(other, job) for other in waiting) else None


def count(jobs: Iterable[Job], mode: Mode) -> int:
    return sum(job.mode == mode for job in jobs)


def share_thread(one: Job, other: Job) -> bool:
    """Whether both go on with one thread, of which Codex has one writer at a time.

    Two follow-ups that were asked for at the same moment are both behind the same job.
    """
    is_same = bool(one.thread_id) and one.thread_id == other.thread_id
    return is_same or (bool(one.after) and one.after == other.after)


def blocks(one: Job, other: Job) -> bool:
    """Whether two write jobs may not run at the same time: they would write in the same place.

    In one tree their scopes decide. Where one's tree lies in the other's, each would see the other's edits
    without knowing whose they are: they never run at once.
    """
    if one.tree != other.tree:
        return is_nested(one.tree, other.tree)
    if not one.tree or one.overlaps or other.overlaps:
        return False
    if one.isolation != "shared" and other.isolation != "shared":
        return False
    return intersect(one.scope, other.scope)


def is_nested(one: str, other: str) -> bool:
    """Whether one work tree lies in the other, as a submodule does."""
    if not one or not other or one == other:
        return False
    inner, outer = max(one, other, key=len), min(one, other, key=len)
    return inner.startswith(outer.rstrip("/") + "/")


# ── scopes ─────────────────────────────────────────────────────────────────


def intersect(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a path may be in both scopes. An empty scope declares nothing and intersects none."""
    return any(_meet(_parts(mine), _parts(theirs)) for mine in one for theirs in other)


def _parts(scope: str) -> tuple[str, ...]:
    return tuple(part for part in scope.split("/") if part not in ("", "."))


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Conservative: two patterns in one place of the path are taken to meet."""
    for mine, theirs in zip(one, other, strict=False):
        if "**" in (mine, theirs):
            return True
        if not _is_pattern(mine) and not _is_pattern(theirs):
            if mine != theirs:
                return False
        elif not _may_match(mine, theirs):
            return False
    return True  # one names a folder around the other, or they are the same


def _is_pattern(part: str) -> bool:
    return any(mark in part for mark in _GLOB)


def _may_match(one: str, other: str) -> bool:
    """Whether some name fits both; wrong only in saying yes. Compares what is before and behind a mark."""
    heads = _head(one), _head(other)
    tails = _head(one[::-1].replace("]", "[")), _head(other[::-1].replace("]", "["))
    return _agree(*heads) and _agree(*tails)


def _head(part: str) -> str:
    for place, mark in enumerate(part):
        if mark in _GLOB:
            return part[:place]
    return part


def _agree(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


# ── ends ───────────────────────────────────────────────────────────────────

RETRIED = frozenset({"exit", "turn", "no_turn", "schema", "stall"})
"""Kinds of failure that another attempt may not have. Not a budget, a launch fault, a cancellation or a
wall: each of them would come again, or was wanted."""


def may_retry(kind: str, attempt: int, retries: int) -> bool:
    """Whether a failed attempt may be followed by another, if it left no edits. They are counted from one."""
    return attempt <= retries and kind in RETRIED


def status_of_end(kind: str | None) -> Status:
    """The status of a job that ended with this kind of failure; none is success."""
    match kind:
        case None:
            return "succeeded"
        case "cancelled":
            return "cancelled"
        case "wall" | "stall":
            return "timed_out"
        case "lost":
            return "lost"
        case _:
            return "failed"
