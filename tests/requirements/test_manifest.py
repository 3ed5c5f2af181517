"""The list of requirements and the tests agree, in both directions."""

from __future__ import annotations

import pytest

from tests.requirements.manifest import FUNCTIONAL, MANIFEST, ROOT, SEED, listed, tagged, written

REMEDY = "run `python -m tests.requirements.manifest`"


def test_every_requirement_of_the_seed_is_listed_and_no_other() -> None:
    """105 parts of 20 chapters, six that are no functions, and the error codes."""
    assert sum(FUNCTIONAL.values()) == 105
    assert set(listed()) == set(SEED)


def test_the_list_names_exactly_the_tests_that_name_the_requirement() -> None:
    """A test that was renamed, removed or marked anew shows up here, and so does a mark that is no id."""
    shown = {name: requirement.get("tests", []) for name, requirement in listed().items()}

    assert {name: tests for name, tests in shown.items() if tests} == tagged(), REMEDY


def test_the_list_is_written_as_the_tool_writes_it() -> None:
    """So that a change to it is a change of its content."""
    assert MANIFEST.read_text() == written(listed()), REMEDY


@pytest.mark.parametrize("name", SEED)
def test_a_requirement_is_shown_or_it_is_said_where_it_belongs(name: str) -> None:
    """By a test, by a benchmark that is there, or in a later piece of work."""
    requirement = listed()[name]

    assert requirement["asks"]
    assert requirement.keys() & {"tests", "later", "bench"}
    assert set(requirement) <= {"asks", "tests", "later", "bench"}
    if "bench" in requirement:
        assert (ROOT / requirement["bench"]).is_file()
