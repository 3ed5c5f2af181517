"""Conflicts of a run: one path that is credited to two of its jobs. Pure.

overlap    they ran at the same time: blocks that the run is accepted
sequence   one had ended when the other began
possible   of one of them at least it is not certain that it changed the path
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from laneway.jobs.attribution import PathClaim
from laneway.jobs.model import Conflict

KINDS = ("overlap", "sequence", "possible")

Times = tuple[float, float | None]
"""When a job started and when it ended; none while it runs."""


def conflicts(
    claims: Iterable[PathClaim], ran: Mapping[str, Times], *, resolved: Iterable[str] = ()
) -> tuple[Conflict, ...]:
    """By path; for one path, the worst first. `resolved` are paths that a person has merged."""
    by_path: dict[str, list[PathClaim]] = {}
    for claim in claims:
        by_path.setdefault(claim.path, []).append(claim)
    done = frozenset(resolved)
    found = []
    for path in sorted(by_path):
        jobs: dict[str, set[str]] = {}
        for one, other in combinations(by_path[path], 2):
            jobs.setdefault(_kind(one, other, ran), set()).update((one.job_id, other.job_id))
        for kind in KINDS:
            if kind in jobs:
                ordered = sorted(jobs[kind], key=lambda job: (ran[job][0], job))
                found.append(Conflict(path=path, kind=kind, jobs=tuple(ordered), is_resolved=path in done))
    return tuple(found)


def blocking(found: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """Those that a run cannot be accepted with."""
    return tuple(conflict for conflict in found if conflict.kind == "overlap" and not conflict.is_resolved)


def _kind(one: PathClaim, other: PathClaim, ran: Mapping[str, Times]) -> str:
    if "uncertain" in (one.certainty, other.certainty):
        return "possible"
    return "overlap" if _at_once(ran[one.job_id], ran[other.job_id]) else "sequence"


def _at_once(one: Times, other: Times) -> bool:
    def ends_before(first: Times, second: Times) -> bool:
        return first[1] is not None and first[1] <= second[0]

    return not ends_before(one, other) and not ends_before(other, one)
