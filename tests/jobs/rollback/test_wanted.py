"""What is given back of the chosen jobs, what stands in the way, and what is left alone."""

from __future__ import annotations

import pytest

from laneway.jobs.attribution import Certainty, PathClaim, Span
from laneway.jobs.rollback.model import Refusal, Return, Step, Wanted
from laneway.jobs.rollback.wanted import joined, wanted
from laneway.jobs.snapshots.model import ABSENT, PathState

S = [PathState("file", 0o644, blob=f"s{number}") for number in range(6)]


def span(
    interval: int,
    certainty: Certainty = "alone",
    *others: str,
    is_outside: bool = False,
    after: PathState | None = None,
) -> Span:
    """A change from one state to the next."""
    return Span(interval, S[interval], after or S[interval + 1], certainty, others, is_outside)


def claim(job: str, *spans: Span, path: str = "x") -> PathClaim:
    return PathClaim(job, path, spans[0].certainty, spans)


def test_changes_that_follow_each_other_are_one() -> None:
    """Others' changes between them are not among them."""
    claims = [claim("A", span(0), span(1), span(3)), claim("B", span(2))]
    assert wanted(claims, {"A"}) == Wanted((Return("x", (Step(S[0], S[2]), Step(S[3], S[4]))),))
    assert wanted(claims, {"A", "B"}) == Wanted((Return("x", (Step(S[0], S[4]),)),))
    assert joined([Step(S[0], S[1]), Step(S[1], S[0])]) == ()


def test_a_change_in_which_two_jobs_have_a_part_is_given_back_only_with_both() -> None:
    """Otherwise the other one's work would go with it: it is named, and stands in the way."""
    claims = [claim("A", span(0, "patch", "B")), claim("B", span(0, "patch", "A"))]
    assert wanted(claims, {"A"}) == Wanted((), (Refusal("x", "shared", "B"),))
    assert wanted(claims, {"A", "B"}) == Wanted((Return("x", (Step(S[0], S[1]),)),))
    assert wanted(claims, {"A"}, despite={"x"}).returns == (Return("x", (Step(S[0], S[1]),)),)


def test_what_is_uncertain_is_left_alone_unless_both_are_chosen() -> None:
    """One of the two did it; or, of one alone, nobody knows."""
    both = [claim("A", span(0, "uncertain", "B")), claim("B", span(0, "uncertain", "A"))]
    assert wanted(both, {"A"}) == Wanted((), left=(Refusal("x", "uncertain"),))
    assert wanted(both, {"A", "B"}).returns == (Return("x", (Step(S[0], S[1]),)),)
    assert wanted([claim("A", span(0, "uncertain"))], {"A"}).left == (Refusal("x", "uncertain"),)
    outside = [claim("A", span(0, "uncertain", "B", is_outside=True)), claim("B", span(0, "uncertain", "A"))]
    assert wanted(outside, {"A", "B"}).left == (Refusal("x", "uncertain"),)


def test_a_patch_that_a_person_edited_later_stands_in_the_way() -> None:
    """Unless they want it back in any case."""
    claims = [claim("A", span(0, "patch", is_outside=True))]
    assert wanted(claims, {"A"}) == Wanted((), (Refusal("x", "outside"),))
    assert wanted(claims, {"A"}, despite={"x"}).returns == (Return("x", (Step(S[0], S[1]),)),)


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (PathState("other", 0o600, fingerprint="pipe"), "special"),
        (PathState("file", 0o644, fingerprint="look:1:2:3", size=1), "too large"),
    ],
)
def test_what_an_undo_could_not_give_back_is_left(after: PathState, why: str) -> None:
    """It stands in nobody's way."""
    found = wanted([claim("A", span(0, after=after)), claim("A", span(0), path="y")], {"A"})
    assert [(refusal.path, refusal.why) for refusal in found.left] == [("x", why)]
    assert [item.path for item in found.returns] == ["y"]


def test_paths_of_other_jobs_are_not_touched() -> None:
    """Nor those where nothing has changed in the end."""
    claims = [
        claim("B", span(0)),
        claim("A", Span(0, ABSENT, S[0], "patch"), Span(1, S[0], ABSENT, "patch"), path="y"),
    ]
    assert wanted(claims, {"A"}) == Wanted(())
