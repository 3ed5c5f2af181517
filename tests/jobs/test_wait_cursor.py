"""Cursors of waits: sets of ended jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import BadCursor
from laneway.jobs.wait_cursor import extended, has


@pytest.mark.covers("J-tools.12")
@given(st.lists(st.lists(st.integers(1, 60), max_size=10), max_size=6))
def test_a_cursor_has_what_was_added_and_nothing_else(steps: list[list[int]]) -> None:
    """However it was put together, and in its shortest form."""
    cursor = None
    for numbers in steps:
        cursor = extended(cursor, numbers)
    everything = {number for numbers in steps for number in numbers}
    assert {number for number in range(70) if has(cursor, number)} == everything
    if cursor is not None:
        assert cursor == extended(None, everything)


def test_neighbours_are_one_range() -> None:
    assert extended("w1:3-5,9", [6, 8]) == "w1:3-6,8-9"


@pytest.mark.parametrize(
    "cursor", ["", "w1", "w2:1", "w1:x", "w1:5-3", "w1:1,,2", "w1:1-", "w1:" + "1," * 20_000]
)
def test_a_broken_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursor):
        has(cursor, 1)
