"""Conflicts of a run: one path that is credited to two of its jobs. Pure.

overlap    they ran at the same time: blocks that the run is accepted
sequence   one had ended when the other began
possible   of one of them at least it is not certain that it changed the path
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

from laneway.jobs.attribution import PathClaim
from laneway.jobs.model import Conflict

KINDS = ("overlap", "sequence", "possible")


def conflicts(
    claims: Iterable[PathClaim], active: Sequence[Collection[str]], *, resolved: Iterable[str] = ()
) -> tuple[Conflict, ...]:
    """By path; for one path, the worst first. `resolved` are paths that a person has merged.

    `active`: for each border of the run, in order, the jobs that ran from then on. It says who ran at the
    same time whatever the system's clock did meanwhile.
    """
    by_path: dict[str, list[PathClaim]] = {}
    for claim in claims:
        by_path.setdefault(claim.path, []).append(claim)
    first: dict[str, int] = {}
    for number, jobs_then in enumerate(active):
        for job in jobs_then:
            first.setdefault(job, number)
    done = frozenset(resolved)
    found = []
    for path in sorted(by_path):
        jobs: dict[str, set[str]] = {}
        for one, other in combinations(by_path[path], 2):
            jobs.setdefault(_kind(one, other, active), set()).update((one.job_id, other.job_id))
        for kind in KINDS:
            if kind in jobs:
                ordered = sorted(jobs[kind], key=lambda job: (first.get(job, len(active)), job))
                found.append(Conflict(path=path, kind=kind, jobs=tuple(ordered), is_resolved=path in done))
    return tuple(found)


def blocking(found: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """Those that a run cannot be accepted with."""
    return tuple(conflict for conflict in found if conflict.kind == "overlap" and not conflict.is_resolved)


def _kind(one: PathClaim, other: PathClaim, active: Sequence[Collection[str]]) -> str:
    if "uncertain" in (one.certainty, other.certainty):
        return "possible"
    is_at_once = any(one.job_id in jobs and other.job_id in jobs for jobs in active)
    return "overlap" if is_at_once else "sequence"
