"""Who is credited with what, and how certain that is."""

from __future__ import annotations

import msgspec
import pytest

from laneway.jobs.attribution import (
    Credits,
    Differences,
    EditWindow,
    Interval,
    JobTraces,
    PathClaim,
    Span,
    credit,
    differences,
    intervals_of,
    is_steady,
)
from laneway.jobs.snapshots.model import ABSENT, Change, PathState

OLD, NEW, NEWER = (PathState("file", 0o644, blob=name) for name in ("old", "new", "newer"))


def changed(path: str, at: float | None = None, *, latest: float | None = None) -> Change:
    return Change(path, OLD, NEW, changed_at=at, latest=latest)


def gone(path: str, latest: float | None) -> Change:
    return Change(path, OLD, ABSENT, latest=latest)


def command(start: float, end: float | None, text: str = "make") -> EditWindow:
    return EditWindow(start, end, text)


def patch(at: float, *paths: str) -> EditWindow:
    return EditWindow(at - 0.1, at, paths=paths)


def during(*changes: Change, jobs: str = "AB") -> Interval:
    """One interval of a hundred seconds."""
    return Interval(0, 100, frozenset(jobs), changes)


def told(found: Credits) -> dict[str, dict[str, str]]:
    """By path, who is credited with what certainty; and what is credited to nobody."""
    by_path: dict[str, dict[str, str]] = {path: {} for path in found.others}
    for claim in found.claims:
        by_path.setdefault(claim.path, {})[claim.job_id] = claim.certainty
    return by_path


def one(change: Change, **jobs: JobTraces) -> dict[str, str]:
    """Who is credited with the only change."""
    return told(credit([during(change)], jobs))[change.path]


# ── what is certain ────────────────────────────────────────────────────────


@pytest.mark.covers("J-a2.11")
def test_a_patch_is_certain_whoever_else_had_something_under_way() -> None:
    """The other one did not name the path."""
    assert one(
        changed("x", 10),
        A=JobTraces((patch(10, "x", "y"),)),
        B=JobTraces((command(5, 20),)),
    ) == {"A": "patch"}


def test_two_patches_of_one_path_are_both_certain() -> None:
    """Each changed it."""
    found = credit(
        [during(changed("x", 20))], {"A": JobTraces((patch(10, "x"),)), "B": JobTraces((patch(20, "x"),))}
    )
    assert told(found) == {"x": {"A": "patch", "B": "patch"}}
    assert [claim.spans[0].others for claim in found.claims] == [("B",), ("A",)]


def test_a_command_that_may_have_written_before_a_patch_is_uncertain() -> None:
    """One that only read, or came later than the last change, is not."""
    for text, start, expected in (
        ("sed -i s/a/b/ x", 5, {"A": "patch", "B": "uncertain"}),
        ("cat x", 5, {"A": "patch"}),
        ("sed -i s/a/b/ x", 30, {"A": "patch"}),
        ("make", 5, {"A": "patch"}),
    ):
        shown = {"A": JobTraces((patch(10, "x"),)), "B": JobTraces((command(start, start + 1, text),))}
        assert one(changed("x", 10), **shown) == expected


def test_a_change_after_a_patch_is_judged_by_its_own_time() -> None:
    """The patch stays certain; so is who was alone when the path was last changed."""
    shown = {"A": JobTraces((patch(10, "x"),)), "B": JobTraces((command(30, 40),))}
    assert one(changed("x", 35), **shown) == {"A": "patch", "B": "alone"}


def test_a_patch_that_somebody_edited_later_is_marked() -> None:
    """The job changed the path, and not alone."""
    (claim,) = credit([during(changed("x", 50))], {"A": JobTraces((patch(10, "x"),))}).claims
    assert claim == PathClaim("A", "x", "patch", (Span(0, OLD, NEW, "patch", is_outside=True),))


def test_a_patch_belongs_to_the_interval_in_which_it_was_made() -> None:
    """What another one changed in the next interval is not its work."""
    intervals = [
        Interval(0, 50, frozenset("A"), (changed("x", 10),)),
        Interval(50, 100, frozenset("AB"), (changed("x", 70),)),
    ]
    shown = {"A": JobTraces((patch(10, "x"), command(52, 53, "ls"))), "B": JobTraces((command(69, 71),))}
    found = credit(intervals, shown)
    assert [
        (claim.job_id, claim.certainty, [span.interval for span in claim.spans]) for claim in found.claims
    ] == [
        ("A", "patch", [0]),
        ("B", "alone", [1]),
    ]


def test_a_patch_at_a_border_belongs_to_the_side_on_which_the_path_changed() -> None:
    """If it changed on both sides, its own time decides; if nothing does, the patch is certain on neither."""
    shown = {"A": JobTraces((EditWindow(49, 51, paths=("x",)),)), "B": JobTraces((command(0, 100),))}
    sides = {
        ((), (changed("x", 50.5),)): [None, "patch"],
        ((changed("x", 49.5),), (changed("x", 80),)): ["patch", None],
        ((changed("x", 10),), (changed("x", 50.5),)): [None, "patch"],
        ((gone("x", None),), (changed("x", None),)): [None, None],
    }
    for (before, after), expected in sides.items():
        intervals = [Interval(0, 50, frozenset("AB"), before), Interval(50, 100, frozenset("AB"), after)]
        spans = {
            span.interval: span.certainty
            for claim in credit(intervals, shown).claims
            if claim.job_id == "A"
            for span in claim.spans
        }
        assert [spans.get(number) if spans.get(number) == "patch" else None for number in (0, 1)] == expected


def test_what_is_merged_from_a_layer_is_certain() -> None:
    """Its commands are no windows: they did not touch the tree."""
    shown = {
        "A": JobTraces((EditWindow(60, 61, paths=("x",), is_merge=True),)),
        "B": JobTraces((command(0, 100, "make x"),)),
    }
    assert told(credit([during(changed("x", 60.5), changed("y", 60.5))], shown)) == {
        "x": {"A": "overlay"},
        "y": {"B": "alone"},
    }


# ── what is not ────────────────────────────────────────────────────────────


@pytest.mark.covers("J-a2.11")
def test_a_path_changed_while_one_job_had_a_command_is_its_own() -> None:
    """Whoever else had commands at other times."""
    shown = {"A": JobTraces((command(5, 20),)), "B": JobTraces((command(30, 40),))}
    assert one(changed("x", 10), **shown) == {"A": "alone"}
    assert one(changed("x", 35), **shown) == {"B": "alone"}


def test_a_window_without_an_end_is_open() -> None:
    """As of a command that was killed, or is still running."""
    assert one(changed("x", 90), A=JobTraces((command(5, None),))) == {"A": "alone"}


def test_events_arrive_a_little_late() -> None:
    """A change just before a command was told is the command's; the slack makes nobody more certain."""
    assert one(changed("x", 9.7), A=JobTraces((command(10, 20),))) == {"A": "alone"}
    shown = {"A": JobTraces((command(10, 20),)), "B": JobTraces((command(5, 9.6),))}
    assert one(changed("x", 9.7), **shown) == {"A": "uncertain", "B": "uncertain"}


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (JobTraces((command(5, 20, "sed -i s/a/b/ x"),)), JobTraces((command(5, 20),)), {"A": "likely"}),
        (JobTraces((command(5, 20),), scope=("x",)), JobTraces((command(5, 20),)), {"A": "likely"}),
        (JobTraces((command(5, 20),), reported=("./x",)), JobTraces((command(5, 20),)), {"A": "likely"}),
        (JobTraces((command(5, 20),)), JobTraces((command(5, 20),)), {"A": "uncertain", "B": "uncertain"}),
        (
            JobTraces((command(5, 20, "rm x"),)),
            JobTraces((command(5, 20, "mv y x"),)),
            {"A": "uncertain", "B": "uncertain"},
        ),
        (JobTraces((command(5, 20, "cat x"),)), JobTraces((command(5, 20, "mv y x"),)), {"B": "likely"}),
    ],
)
def test_of_several_only_the_one_that_names_the_path_is_likely(
    mine: JobTraces, theirs: JobTraces, expected: dict[str, str]
) -> None:
    """In a command that may write, in the scope, or in the report."""
    assert one(changed("x", 10), A=mine, B=theirs) == expected


def test_what_changed_outside_of_every_window_is_credited_to_nobody() -> None:
    """A person saved it, between two commands of the jobs."""
    shown = {"A": JobTraces((command(5, 20),)), "B": JobTraces((command(60, 70),))}
    assert one(changed("x", 40), **shown) == {}
    assert one(changed("x", 40)) == {}


def test_a_path_that_a_command_named_before_somebody_changed_it_is_uncertain() -> None:
    """Both may have changed it; a rollback leaves it alone."""
    found = credit([during(changed("x", 40))], {"A": JobTraces((command(5, 20, "sed -i s/a/b/ x"),))})
    assert found.claims == (
        PathClaim("A", "x", "uncertain", (Span(0, OLD, NEW, "uncertain", is_outside=True),)),
    )


def test_a_job_that_was_not_active_is_never_credited() -> None:
    """Its last window ends at a border."""
    intervals = [
        Interval(0, 50, frozenset("A"), ()),
        Interval(50, 100, frozenset("B"), (changed("x", 50.2),)),
    ]
    shown = {"A": JobTraces((command(40, 50),)), "B": JobTraces(())}
    assert told(credit(intervals, shown)) == {"x": {}}


# ── what has no time of its own ────────────────────────────────────────────


def test_what_is_gone_is_judged_by_the_latest_time_that_it_can_have_gone() -> None:
    """The folder's: other names in it may have changed later."""
    alone = {"A": JobTraces((command(5, 20),))}
    both = {**alone, "B": JobTraces((command(60, 70),))}
    assert one(gone("x", 10), **alone) == {"A": "likely"}
    assert one(gone("x", 3), **alone) == {}
    assert one(gone("x", 50), **alone) == {"A": "uncertain"}
    assert one(gone("x", None), **alone) == {"A": "uncertain"}
    assert one(gone("x", 10), **both) == {"A": "likely"}
    assert one(gone("x", 65), **both) == {"A": "uncertain", "B": "uncertain"}
    both["A"] = JobTraces((command(5, 20, "rm x"),))
    assert one(gone("x", 65), **both) == {"A": "likely"}
    assert one(gone("x", 50), **both) == {"A": "likely"}


def test_what_came_with_its_folder_is_judged_by_the_folder() -> None:
    """A file keeps its own time when a folder above it is renamed."""
    assert one(changed("new/x", latest=10), A=JobTraces((command(5, 20, "mv old new"),))) == {"A": "likely"}


# ── claims over several intervals ──────────────────────────────────────────


def test_a_claim_has_all_its_changes_and_the_best_certainty() -> None:
    """Each with its own states."""
    intervals = [
        during(Change("x", OLD, NEW, changed_at=10), jobs="A"),
        Interval(100, 200, frozenset("AB"), (Change("x", NEW, NEWER, changed_at=110),)),
    ]
    shown = {"A": JobTraces((patch(10, "x"), command(105, 120))), "B": JobTraces((command(105, 120),))}
    found = credit(intervals, shown)
    assert found.claims == (
        PathClaim(
            "A",
            "x",
            "patch",
            (Span(0, OLD, NEW, "patch"), Span(1, NEW, NEWER, "uncertain", ("B",))),
        ),
        PathClaim("B", "x", "uncertain", (Span(1, NEW, NEWER, "uncertain", ("A",)),)),
    )
    assert msgspec.json.Decoder(PathClaim).decode(msgspec.json.encode(found.claims[0])) == found.claims[0]


def test_intervals_lie_between_borders() -> None:
    """With the jobs that the first of the two says."""
    borders = [(1.0, ("A",)), (2.0, ("A", "B")), (3.0, ())]
    changes = ((changed("x"),), (changed("y"),))
    assert intervals_of(borders, changes) == (
        Interval(1.0, 2.0, frozenset("A"), changes[0]),
        Interval(2.0, 3.0, frozenset("AB"), changes[1]),
    )
    assert intervals_of([], ()) == ()


# ── a clock that is set ─────────────────────────────────────────────────────


def test_a_clock_that_is_set_is_noticed_and_one_that_begins_anew_with_the_machine_is_not() -> None:
    """Each border has its time by the system's clock and by one that nobody sets."""
    assert is_steady([(1000.0, 50.0), (1010.0, 60.1), (2010.0, 1060.0)])
    assert not is_steady([(1000.0, 50.0), (990.0, 60.0)])
    assert not is_steady([(1000.0, 50.0), (4600.0, 60.0)])
    assert is_steady([(1000.0, 50.0), (5000.0, 7.0), (5001.0, 8.0)]), "the machine was started anew"
    assert is_steady([(1000.0, 0.0), (10.0, 0.0)]), "nothing is known"
    assert is_steady([])


@pytest.mark.covers("J-a2.11")
def test_nothing_is_certain_by_its_time_if_the_clock_was_set() -> None:
    """A person may have saved the file, at a time that falls into a job's command now. A patch is certain."""
    changes = (changed("x", 10), changed("y", 10), gone("z", 10), changed("p", 30))
    shown = {"A": JobTraces((command(5, 20, "make y"), patch(80, "p"))), "B": JobTraces()}
    timed, untimed = (
        told(credit([Interval(0, 100, frozenset("AB"), changes, is_timed)], shown))
        for is_timed in (True, False)
    )
    assert timed["x"] == timed["y"] == {"A": "alone"}
    assert untimed == {
        "x": {"A": "uncertain"},
        "y": {"A": "likely"},
        "z": {"A": "uncertain"},
        "p": {"A": "patch"},
    }
    late = Interval(500, 600, frozenset("AB"), changes, is_timed=False)
    assert told(credit([late], shown)) == untimed, "its windows are compared with nothing"


# ── differences ────────────────────────────────────────────────────────────


@pytest.mark.covers("004-boss.5", "004-a2.4", "J-a2.12")
def test_differences_from_the_report_and_the_scope_are_listed() -> None:
    """What is uncertain is not held against the job."""
    shown = JobTraces(
        (command(5, 20), patch(30, "src/b")), scope=("src/",), reported=("./src/a", "src/never")
    )
    both = during(changed("src/a", 10), changed("src/b", 30), changed("c", 10))
    claims = credit([both], {"A": shown}).claims
    assert differences(claims, shown) == Differences(("src/never",), ("c", "src/b"), ("c",))
    no_report = msgspec.structs.replace(shown, reported=None, scope=())
    assert differences(claims, no_report) == Differences()
    unsure = tuple(msgspec.structs.replace(claim, certainty="uncertain") for claim in claims)
    assert differences(unsure, shown) == Differences(("src/never",))
