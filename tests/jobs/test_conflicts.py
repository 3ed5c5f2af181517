"""One path in two jobs of a run."""

from __future__ import annotations

import pytest

from laneway.jobs.attribution import Certainty, PathClaim
from laneway.jobs.conflicts import blocking, conflicts
from laneway.jobs.model import Conflict

RAN = ["A", "AB", "B", "BD", "B", "", "C"]
"""Who was active from each border of the run on."""


def claim(job: str, path: str, certainty: Certainty = "alone") -> PathClaim:
    return PathClaim(job, path, certainty, ())


@pytest.mark.covers("004-a2.5", "J-a2.13")
def test_jobs_that_ran_at_once_overlap() -> None:
    """And block the acceptance, until a person has merged the path."""
    claims = [claim("B", "x"), claim("A", "x", "patch"), claim("A", "y"), claim("B", "z")]
    assert conflicts(claims, RAN) == (Conflict(path="x", kind="overlap", jobs=("A", "B")),)
    assert blocking(conflicts(claims, RAN)) == conflicts(claims, RAN)
    resolved = conflicts(claims, RAN, resolved=["x"])
    assert resolved == (Conflict(path="x", kind="overlap", jobs=("A", "B"), is_resolved=True),)
    assert blocking(resolved) == ()


@pytest.mark.covers("J-a2.13")
def test_jobs_that_ran_one_after_the_other_are_a_sequence() -> None:
    """It is told, and blocks nothing; one that runs on is after one that has ended."""
    for pair in (("A", "C"), ("A", "D")):
        found = conflicts([claim(job, "x") for job in pair], RAN)
        assert found == (Conflict(path="x", kind="sequence", jobs=pair),)
        assert blocking(found) == ()


@pytest.mark.covers("J-a2.13")
def test_where_one_side_is_uncertain_a_conflict_is_possible() -> None:
    """Whenever they ran."""
    for other in ("B", "C"):
        found = conflicts([claim("A", "x", "uncertain"), claim(other, "x", "patch")], RAN)
        assert found == (Conflict(path="x", kind="possible", jobs=("A", other)),)
        assert blocking(found) == ()


def test_three_jobs_may_be_in_several_conflicts() -> None:
    """Each pair counts; the worst comes first."""
    claims = [claim("A", "x"), claim("B", "x"), claim("C", "x"), claim("D", "x", "uncertain")]
    assert conflicts(claims, RAN) == (
        Conflict(path="x", kind="overlap", jobs=("A", "B")),
        Conflict(path="x", kind="sequence", jobs=("A", "B", "C")),
        Conflict(path="x", kind="possible", jobs=("A", "B", "D", "C")),
    )
