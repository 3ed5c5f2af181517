"""The page about the official conformance suite."""

from __future__ import annotations

from scripts.generate_conformance import PAGE, page

from tests.peers.conformance_table import SUITES


def test_the_page_about_conformance_is_what_the_table_says() -> None:
    """`scripts/generate_conformance.py` writes it."""
    assert PAGE.read_text() == page()


def test_no_scenario_is_listed_twice() -> None:
    """As passing and as failing, or twice in one list."""
    for suite in SUITES:
        names = [*suite.passes, *suite.gaps, *suite.unchecked]
        assert len(names) == len(set(names)), suite.title
        assert set(suite.skipped) <= set(suite.passes)
