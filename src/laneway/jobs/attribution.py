"""Who changed what in a run, and how certain that is. Pure: time is in what is handed in.

Between two borders of a run lies an interval, with the paths that changed in it. What a job shows of
itself are the windows in which it had a command or a patch under way. A certainty is never overstated:

    overlay     the path was merged from a layer in which only this job wrote
    patch       a completed patch of the job names the path
    alone       it was changed while only this job had a command or a patch under way
    likely      several had; only this one names the path in its commands, its scope or its report. Or
                only one had, but when exactly the path changed is not known, as of one that is gone
    uncertain   the job may have changed it: several may have, or it names a path that was changed later

What was changed outside of every window is somebody else's, and credited to nobody. In a tree that a
person shares with a job, what the person saves during a job's command looks like the job's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import msgspec

from laneway.base.prepare import prepare
from laneway.jobs.globs import covers
from laneway.jobs.mentions import Mentions, may_write
from laneway.jobs.snapshots.model import Change, PathState

Certainty: TypeAlias = Literal["overlay", "patch", "alone", "likely", "uncertain"]
CERTAINTIES: tuple[Certainty, ...] = ("overlay", "patch", "alone", "likely", "uncertain")
"""From the most certain on."""
SLACK_S = 0.5
"""A window is told by an event, which arrives later than what it tells of happens."""


@prepare
class EditWindow(msgspec.Struct, frozen=True, omit_defaults=True):
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
class JobTraces(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job shows of its edits. A job with a layer of its own has no windows but its merge."""

    windows: tuple[EditWindow, ...] = ()
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
    is_timed: bool = True
    """Whether times can be compared: the system's clock was not set while the run lasted."""


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
    borders: Sequence[tuple[float, Collection[str]]],
    changes: Sequence[tuple[Change, ...]],
    *,
    is_timed: bool = True,
) -> tuple[Interval, ...]:
    """From the borders in order (time, jobs that are active after it) and the changes between them."""
    pairs = zip(borders[:-1], borders[1:], changes, strict=True)
    return tuple(
        Interval(start, end, frozenset(active), between, is_timed)
        for (start, active), (end, _), between in pairs
    )


def is_steady(times: Sequence[tuple[float, float]], *, slack_s: float = SLACK_S) -> bool:
    """Whether the system's clock ran evenly: of each border, its time by that and by one that nobody sets.

    The second one begins anew when the machine starts; what lies between is not known, and taken as even.
    """
    return all(
        not 0 < steady <= next_steady or abs((next_at - at) - (next_steady - steady)) <= slack_s
        for (at, steady), (next_at, next_steady) in pairwise(times)
    )


def credit(
    intervals: Sequence[Interval], shown: Mapping[str, JobTraces], *, slack_s: float = SLACK_S
) -> Credits:
    """Credit every change to the jobs that made it, or may have."""
    spans: dict[tuple[str, str], list[Span]] = {}
    others: set[str] = set()
    patched = _patched(intervals, shown, slack_s)
    for number, interval in enumerate(intervals):
        scene = _Scene(number, interval, shown, slack_s)
        for change in interval.changes:
            found = scene.credits(change, patched.get((number, change.path), {}))
            if not found:
                others.add(change.path)
            for job, span in found.items():
                spans.setdefault((change.path, job), []).append(span)
    claims = (
        PathClaim(job, path, min((span.certainty for span in of), key=CERTAINTIES.index), tuple(of))
        for (path, job), of in sorted(spans.items())
    )
    return Credits(tuple(claims), tuple(sorted(others)))


def differences(claims: Iterable[PathClaim], shown: JobTraces) -> Differences:
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

Firm: TypeAlias = dict[str, EditWindow]
"""By job, the patch or merge that changed a path in an interval."""


def _patched(
    intervals: Sequence[Interval], shown: Mapping[str, JobTraces], slack_s: float
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
    window: EditWindow,
    path: str,
    changed: Sequence[Mapping[str, Change]],
    slack_s: float,
) -> int | None:
    """The interval in which this patch changed this path."""
    for slack in (0.0, slack_s):
        near = [
            number
            for number in places
            if not intervals[number].is_timed or _meets(window, intervals[number], slack)
        ]
        if len(near) > 1 and intervals[near[0]].is_timed:  # under way at a border: the path's time decides
            near = [number for number in near if _is_within(window, changed[number][path].changed_at, slack)]
        if len(near) == 1:
            return near[0]
        if near:
            return None
    return None


def _meets(window: EditWindow, interval: Interval, slack_s: float) -> bool:
    end = float("inf") if window.end is None else window.end
    return window.start - slack_s <= interval.end and end + slack_s >= interval.start


def _is_within(window: EditWindow, at: float | None, slack_s: float) -> bool:
    if at is None:
        return False
    return window.start - slack_s <= at and (window.end is None or at <= window.end + slack_s)


# ── what is not ────────────────────────────────────────────────────────────


class _Scene:
    """One interval, and what the jobs that were active had under way in it."""

    def __init__(
        self, number: int, interval: Interval, shown: Mapping[str, JobTraces], slack_s: float
    ) -> None:
        self._number = number
        self._slack_s = slack_s
        self._is_timed = interval.is_timed
        self._jobs = {job: facts for job, facts in shown.items() if job in interval.active}
        self._windows = {
            job: [
                window
                for window in facts.windows
                if not window.is_merge and (not interval.is_timed or _meets(window, interval, slack_s))
            ]
            for job, facts in self._jobs.items()
        }
        self._named = {job: _names(windows) for job, windows in self._windows.items()}

    def credits(self, change: Change, firm: Firm) -> dict[str, Span]:
        """The jobs that a change is credited to."""
        if not self._is_timed:
            change = msgspec.structs.replace(change, changed_at=None, latest=None)
        certainties: dict[str, Certainty] = {
            job: "overlay" if window.is_merge else "patch" for job, window in firm.items()
        }
        at = change.changed_at
        is_explained = bool(firm) and (
            at is None or any(_is_within(window, at, self._slack_s) for window in firm.values())
        )
        is_outside = False
        if not is_explained:
            more, is_outside = self._by_time(change)
            certainties = {**more, **certainties}
        if not (is_explained and "overlay" in certainties.values()):  # our own merge had compared before
            for job in self._jobs:  # one that changed it before the last change hid that
                if job not in certainties and self._may_have_written(job, change):
                    certainties[job] = "uncertain"
        return {
            job: Span(
                self._number,
                change.before,
                change.after,
                certainty,
                tuple(sorted(certainties.keys() - {job})),
                is_outside,
            )
            for job, certainty in certainties.items()
        }

    def _by_time(self, change: Change) -> tuple[dict[str, Certainty], bool]:
        """By who had something under way when the path was last changed; and whether nobody had."""
        if change.changed_at is not None:
            there = self._under_way(change.changed_at)
            return self._among(there, "alone", change), not there
        latest = change.latest
        there = self._had_begun(latest)
        if not there:
            return {}, True
        if latest is None:  # nothing tells when: not even one job alone is sure to have done it
            return self._among(there, "likely" if self._naming(there, change) else "uncertain", change), False
        last = self._under_way(latest)
        named = self._naming(there, change)
        if len(named) == 1:
            return dict.fromkeys(named, "likely"), False
        if there == last and len(there) == 1:  # it may have gone before, by a person's hand
            return dict.fromkeys(there, "likely"), False
        return dict.fromkeys(named or there, "uncertain"), not last

    def _among(self, there: Sequence[str], single: Certainty, change: Change) -> dict[str, Certainty]:
        """One had something under way, or of several only one names the path."""
        if len(there) == 1:
            return dict.fromkeys(there, single)
        named = self._naming(there, change)
        return (
            dict.fromkeys(named, "likely") if len(named) == 1 else dict.fromkeys(named or there, "uncertain")
        )

    def _under_way(self, at: float) -> list[str]:
        return [
            job
            for job, windows in self._windows.items()
            if any(_is_within(window, at, self._slack_s) for window in windows)
        ]

    def _had_begun(self, until: float | None) -> list[str]:
        """Jobs with a window in this interval that began before a time."""
        return [
            job
            for job, windows in self._windows.items()
            if any(until is None or window.start - self._slack_s <= until for window in windows)
        ]

    def _naming(self, jobs: Iterable[str], change: Change) -> list[str]:
        """Those that name the path: in a command of this interval, in the scope, in the report."""
        return [
            job
            for job in jobs
            if covers(self._jobs[job].scope, change.path)
            or change.path in {_plain(text) for text in self._jobs[job].reported or ()}
            or self._may_have_written(job, change)
        ]

    def _may_have_written(self, job: str, change: Change) -> bool:
        """Whether a command that is not known only to read names the path, before it was last changed."""
        until = change.changed_at if change.changed_at is not None else change.latest
        first = self._named[job].first(change.path)
        return first is not None and (until is None or first - self._slack_s <= until)


def _names(windows: Iterable[EditWindow]) -> Mentions:
    """What these name, but for commands that are known only to read."""
    named = Mentions((window.text, window.start) for window in windows if may_write(window.text))
    for window in windows:
        for path in window.paths:
            named.add_path(path, window.start)
    return named
