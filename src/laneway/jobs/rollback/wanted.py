"""What shall be given back of the chosen jobs, by what is credited to them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from laneway.jobs.attribution import PathClaim, Span
from laneway.jobs.rollback.model import Refusal, Return, Step, Wanted, Why
from laneway.jobs.snapshots.model import PathState
from laneway.jobs.snapshots.reading import LOOK


def wanted(claims: Iterable[PathClaim], jobs: Collection[str], *, despite: Collection[str] = ()) -> Wanted:
    """The paths of these jobs, for a rollback. `despite` are paths that a person wants back in any case."""
    by_path: dict[str, dict[int, list[Span]]] = {}
    for claim in claims:
        if claim.job_id in jobs:
            for span in claim.spans:
                by_path.setdefault(claim.path, {}).setdefault(span.interval, []).append(span)
    returns: list[Return] = []
    refused: list[Refusal] = []
    left: list[Refusal] = []
    for path, spans in sorted(by_path.items()):
        steps: list[Step] = []
        for _, same in sorted(spans.items()):
            why, is_in_the_way = (None, False) if path in despite else _against(same, jobs)
            if why is None:
                steps.append(Step(same[0].before, same[0].after))
            else:
                detail = " and ".join(_others(same, jobs)) if why == "shared" else ""
                (refused if is_in_the_way else left).append(Refusal(path, why, detail))
        if net := joined(steps):
            returns.append(Return(path, net))
    return Wanted(tuple(returns), _once(refused), _once(left))


def joined(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Changes that follow each other without a gap are one change."""
    found: list[Step] = []
    for step in steps:
        if found and found[-1].after == step.before:
            found[-1] = Step(found[-1].before, step.after)
        else:
            found.append(step)
    return tuple(step for step in found if step.before != step.after)


def _against(spans: Sequence[Span], jobs: Collection[str]) -> tuple[Why | None, bool]:
    """Why one change of a path is not taken back, and whether that stands in the way of all."""
    is_firm = any(span.certainty != "uncertain" for span in spans)
    if _others(spans, jobs):
        return ("shared" if is_firm else "uncertain"), is_firm
    if spans[0].is_outside:
        return ("outside" if is_firm else "uncertain"), is_firm
    if not is_firm and not _others(spans, ()):  # nothing tells when it was changed: it may have been a person
        return "uncertain", False
    return _unfit(spans[0].after), False


def _others(spans: Sequence[Span], jobs: Collection[str]) -> list[str]:
    """Jobs that may have a part in this change, besides these."""
    return sorted({other for span in spans for other in span.others} - set(jobs))


def _unfit(state: PathState) -> Why | None:
    """Why what a job left cannot be taken away: it could not be given back by an undo."""
    if state.kind == "other":
        return "special"
    return "too large" if state.fingerprint.startswith(LOOK) else None


def _once(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    return tuple(dict.fromkeys(refusals))
