"""The lists of requirements and the tests agree, in both directions."""

from __future__ import annotations

import pytest

from tests.requirements.manifest import FUNCTIONAL, LISTINGS, ROOT, Listing, tagged

REMEDY = "run `python -m tests.requirements.manifest`"
lists = pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.path.stem)
ENTRIES = [(listing, name) for listing in LISTINGS for name in listing.ids]


@lists
def test_every_requirement_is_listed_and_no_other(listing: Listing) -> None:
    """Of seed 001: 105 parts of 20 chapters, six that are no functions, and the error codes."""
    assert sum(FUNCTIONAL.values()) == 105
    assert set(listing.read()) == set(listing.ids)
    assert len(listing.ids) == len(set(listing.ids))


def test_the_lists_name_exactly_the_tests_that_name_the_requirement() -> None:
    """A test that was renamed, removed or marked anew shows up here, and so does a mark that is no id."""
    shown = {
        name: requirement["tests"]
        for listing in LISTINGS
        for name, requirement in listing.read().items()
        if requirement.get("tests")
    }

    assert shown == tagged(), REMEDY


@lists
def test_a_list_is_written_as_the_tool_writes_it(listing: Listing) -> None:
    """So that a change to it is a change of its content."""
    assert listing.path.read_text() == listing.written(listing.read()), REMEDY


@pytest.mark.parametrize(("listing", "name"), ENTRIES, ids=[name for _, name in ENTRIES])
def test_a_requirement_is_shown_or_it_is_said_where_it_belongs(listing: Listing, name: str) -> None:
    """By a test, by a benchmark that is there, or in a later piece of work."""
    requirement = listing.read()[name]

    assert requirement["asks"]
    assert requirement.keys() & {"tests", "later", "bench"}
    assert set(requirement) <= {"asks", "tests", "later", "bench"}
    if "bench" in requirement:
        assert (ROOT / requirement["bench"]).is_file()
