"""Durations as people type them."""

from __future__ import annotations

import argparse

import pytest

from laneway.cli.jobs.durations import days, milliseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("90", 90_000), ("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("2d", 172_800_000)],
)
def test_a_duration_is_a_number_with_a_unit_or_several(text: str, expected: int) -> None:
    """Without a unit: seconds."""
    assert milliseconds(text) == expected


def test_an_age_without_a_unit_is_in_days() -> None:
    assert (days("30"), days("12h"), days("7d")) == (30, 0.5, 7)


@pytest.mark.parametrize("text", ["", "m", "1.5h", "-1s", "1h 30m", "10x", "٣s", "9" * 13, "1_000"])
def test_anything_else_is_refused(text: str) -> None:
    """With an example, by either."""
    for read in (milliseconds, days):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a duration such as 90s"):
            read(text)
