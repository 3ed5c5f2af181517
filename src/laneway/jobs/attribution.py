"""Who changed what in a run, and how certain that is. Pure: time is in what is handed in.

Between two borders of a run lies an interval, with the paths that changed in it. What a job shows of
itself are the windows in which it had a command or a patch under way. A certainty is never overstated:

    overlay     the path was merged from a layer in which only this job wrote
    patch       a completed patch of the job names the path
    alone       it was changed while only this job had a command or a patch under way
    likely      several had; only this one names the path in its commands, its scope or its report
    uncertain   the job may have changed it: several may have, or it names a path that was changed later

What was changed outside of every window is somebody else's, and credited to nobody. In a tree that a
person shares with a job, what the person saves during a job's command looks like the job's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from laneway.base.prepare import prepare
from laneway.jobs.globs import covers
from laneway.jobs.mentions import may_write, mentions
from laneway.jobs.snapshots.model import Change, PathState

Certainty: TypeAlias = Literal["overlay", "patch", "alone", "likely", "uncertain"]
CERTAINTIES: tuple[Certainty, ...] = ("overlay", "patch", "alone", "likely", "uncertain")
"""From the most certain on."""
SLACK_S = 0.5
"""A window is told by an event, which arrives later than what it tells of happens."""


@prepare
class Window(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time in which a job had something under way that may change files."""

    start: float
    end: float | None = None
    """None while it has not ended, or if its end was never told."""
    text: str = ""
    """Of a command."""
    paths: tuple[str, ...] = ()
    """Of a patch that was completed, or of a layer that was merged: what it changed, for certain."""
    is_merge: bool = False
    """Whether it is the merge of the job's own layer."""


@prepare
class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job shows of its edits. A job with a layer of its own has no windows but its merge."""

    windows: tuple[Window, ...] = ()
    scope: tuple[str, ...] = ()
    reported: tuple[str, ...] | None = None
    """The paths of the worker's own report; none if it made none."""


class Interval(msgspec.Struct, frozen=True):
    """What changed between two borders."""

    start: float
    end: float
    active: frozenset[str]
    """The write jobs that ran in this tree, from border to border."""
    changes: tuple[Change, ...]


@prepare
class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of a path within one interval, as far as it is credited to a job."""

    interval: int
    before: PathState
    after: PathState
    certainty: Certainty
    others: tuple[str, ...] = ()
    """Jobs that may have a part in this very change."""
    is_outside: bool = False
    """It was last changed outside of every window: perhaps by a person."""


@prepare
class PathClaim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path that is credited to a job: certain or not, that it changed it."""

    job_id: str
    path: str
    certainty: Certainty
    spans: tuple[Span, ...]
    """In the order of the intervals."""


class Credits(msgspec.Struct, frozen=True):
    claims: tuple[PathClaim, ...]
    """By path, then by job."""
    others: tuple[str, ...]
    """Paths with a change that is credited to nobody: to a person, an editor, a program of theirs."""


class Differences(msgspec.Struct, frozen=True):
    """Of what is credited to a job: from what it reports, and from its scope."""

    only_reported: tuple[str, ...] = ()
    not_reported: tuple[str, ...] = ()
    outside_scope: tuple[str, ...] = ()


def intervals_of(
    borders: Sequence[tuple[float, Collection[str]]], changes: Sequence[tuple[Change, ...]]
) -> tuple[Interval, ...]:
    """From the borders in order (time, jobs that are active after it) and the changes between them."""
    pairs = zip(borders[:-1], borders[1:], changes, strict=True)
    return tuple(
        Interval(start, end, frozenset(active), between) for (start, active), (end, _), between in pairs
    )


def credit(intervals: Sequence[Interval], shown: Mapping[str, Shown], *, slack_s: float = SLACK_S) -> Credits:
    """Credit every change to the jobs that made it, or may have."""
    spans: dict[tuple[str, str], list[Span]] = {}
    others: set[str] = set()
    patched = _patched(intervals, shown, slack_s)
    for number, interval in enumerate(intervals):
        jobs = {job: facts for job, facts in shown.items() if job in interval.active}
        for change in interval.changes:
            scene = _Scene(number, interval, change, jobs, slack_s)
            found = scene.credits(patched.get((number, change.path), {}))
            if not found:
                others.add(change.path)
            for job, span in found.items():
                spans.setdefault((change.path, job), []).append(span)
    claims = (
        PathClaim(job, path, min((span.certainty for span in of), key=CERTAINTIES.index), tuple(of))
        for (path, job), of in sorted(spans.items())
    )
    return Credits(tuple(claims), tuple(sorted(others)))


def differences(claims: Iterable[PathClaim], shown: Shown) -> Differences:
    """Of one job. What is uncertain is not held against it."""
    credited = {claim.path: claim for claim in claims}
    firm = [path for path, claim in credited.items() if claim.certainty != "uncertain"]
    reported = None if shown.reported is None else {_plain(path) for path in shown.reported}
    return Differences(
        only_reported=tuple(sorted((reported or set()) - credited.keys())),
        not_reported=() if reported is None else tuple(sorted(set(firm) - reported)),
        outside_scope=tuple(sorted(path for path in firm if shown.scope and not covers(shown.scope, path))),
    )


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


# ── what is certain ────────────────────────────────────────────────────────

Firm: TypeAlias = dict[str, Window]
"""By job, the patch or merge that changed a path in an interval."""


def _patched(
    intervals: Sequence[Interval], shown: Mapping[str, Shown], slack_s: float
) -> dict[tuple[int, str], Firm]:
    """Which patch belongs to which change. One that may belong to several belongs to none for certain."""
    found: dict[tuple[int, str], Firm] = {}
    changed = [{change.path: change for change in interval.changes} for interval in intervals]
    for job, facts in shown.items():
        for window in facts.windows:
            for path in window.paths:
                places = [
                    number
                    for number, interval in enumerate(intervals)
                    if job in interval.active and path in changed[number]
                ]
                place = _place(places, intervals, window, path, changed, slack_s)
                if place is not None:
                    firm = found.setdefault((place, path), {})
                    if job not in firm or window.is_merge:
                        firm[job] = window
    return found


def _place(
    places: Sequence[int],
    intervals: Sequence[Interval],
    window: Window,
    path: str,
    changed: Sequence[Mapping[str, Change]],
    slack_s: float,
) -> int | None:
    """The interval in which this patch changed this path."""
    for slack in (0.0, slack_s):
        near = [number for number in places if _meets(window, intervals[number], slack)]
        if len(near) > 1:  # it was under way at a border: the path's own time decides
            near = [number for number in near if _is_within(window, changed[number][path].changed_at, slack)]
        if len(near) == 1:
            return near[0]
        if near:
            return None
    return None


def _meets(window: Window, interval: Interval, slack_s: float) -> bool:
    end = float("inf") if window.end is None else window.end
    return window.start - slack_s <= interval.end and end + slack_s >= interval.start


def _is_within(window: Window, at: float | None, slack_s: float) -> bool:
    if at is None:
        return False
    return window.start - slack_s <= at and (window.end is None or at <= window.end + slack_s)


# ── what is not ────────────────────────────────────────────────────────────


class _Scene:
    """One change in one interval, and the jobs that were there."""

    def __init__(
        self, number: int, interval: Interval, change: Change, jobs: Mapping[str, Shown], slack_s: float
    ) -> None:
        self._number = number
        self._interval = interval
        self._change = change
        self._jobs = jobs
        self._slack_s = slack_s

    def credits(self, firm: Firm) -> dict[str, Span]:
        """The jobs that this change is credited to."""
        found = {job: self._span("overlay" if window.is_merge else "patch") for job, window in firm.items()}
        at = self._change.changed_at
        explained = bool(firm) and (
            at is None or any(_is_within(window, at, self._slack_s) for window in firm.values())
        )
        rest: Mapping[str, Certainty] = {}
        is_outside = False
        if not explained:
            rest, is_outside = self._by_time()
        elif any(window.is_merge for window in firm.values()):
            return found  # what our own merge wrote, it had compared before
        more: dict[str, Certainty] = {job: certainty for job, certainty in rest.items() if job not in firm}
        for job in self._jobs:  # one that changed it before the last change hid that
            if job not in firm and job not in more and self._may_have_written(job):
                more[job] = "uncertain"
        involved = {*found, *more}
        return {
            job: self._span(
                found[job].certainty if job in found else more[job], involved - {job}, is_outside=is_outside
            )
            for job in sorted(involved)
        }

    def _by_time(self) -> tuple[Mapping[str, Certainty], bool]:
        """By who had something under way when the path was last changed; and whether nobody had."""
        at = self._change.changed_at
        if at is not None:
            there = self._under_way(at)
            return self._among(there, "alone"), not there
        latest = self._change.latest
        there = self._had_windows(latest)
        if not there:
            return {}, True
        if latest is None:  # nothing tells when: not even one job alone is sure to have done it
            return self._among(there, "likely" if self._naming(there) else "uncertain"), False
        last = self._under_way(latest)
        if there == last:
            return self._among(there, "alone"), False
        named = self._naming(there)
        if len(named) == 1:
            return dict.fromkeys(named, "likely"), False
        return dict.fromkeys(named or there, "uncertain"), not last

    def _among(self, there: Collection[str], single: Certainty) -> Mapping[str, Certainty]:
        """One had something under way, or of several only one names the path."""
        if len(there) == 1:
            return dict.fromkeys(there, single)
        named = self._naming(there)
        return (
            dict.fromkeys(named, "likely") if len(named) == 1 else dict.fromkeys(named or there, "uncertain")
        )

    def _under_way(self, at: float) -> list[str]:
        return [
            job
            for job, facts in self._jobs.items()
            if any(_is_within(window, at, self._slack_s) for window in facts.windows if not window.is_merge)
        ]

    def _had_windows(self, until: float | None = None) -> list[str]:
        """Jobs with a window in this interval that began before a time."""
        return [job for job in self._jobs if any(self._windows(job, until))]

    def _windows(self, job: str, until: float | None = None) -> Iterator[Window]:
        for window in self._jobs[job].windows:
            is_early = until is None or window.start - self._slack_s <= until
            if is_early and not window.is_merge and _meets(window, self._interval, self._slack_s):
                yield window

    def _naming(self, jobs: Iterable[str]) -> list[str]:
        return [job for job in jobs if self._names(job)]

    def _names(self, job: str) -> bool:
        """Whether it names the path: in a command of this interval, in its scope, in its report."""
        path, facts = self._change.path, self._jobs[job]
        return (
            self._may_have_written(job)
            or covers(facts.scope, path)
            or path in {_plain(text) for text in facts.reported or ()}
        )

    def _may_have_written(self, job: str) -> bool:
        """Whether a command that is not known only to read names the path, before it was last changed."""
        path, change = self._change.path, self._change
        until = change.changed_at if change.changed_at is not None else change.latest
        return any(
            path in window.paths or (mentions(window.text, path) and may_write(window.text))
            for window in self._windows(job, until)
        )

    def _span(self, certainty: Certainty, others: Collection[str] = (), *, is_outside: bool = False) -> Span:
        change = self._change
        return Span(self._number, change.before, change.after, certainty, tuple(sorted(others)), is_outside)
