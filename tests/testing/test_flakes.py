"""The pure parts of `make flakes`: what it reads out of a run, and the table that it prints."""

from __future__ import annotations

from scripts.flakes import WHOLE_RUN, Round, failures, summary, table

OUTPUT = """\
.F..E                                                                    [100%]
=================================== FAILURES ===================================
FAILED is a word that a log may begin a line with
The order of this run: pytest --randomly-seed=7
=========================== short test summary info ============================
SKIPPED [1] tests/a/test_one.py:74: root may write everywhere
FAILED tests/a/test_one.py::test_it[a - b] - AssertionError: no - really
FAILED tests/a/test_one.py::test_two
ERROR tests/a/test_two.py - ImportError: nothing of that name
1 error, 2 failed, 2 passed in 1.38s
"""


def test_failed_tests_are_read_from_what_pytest_printed() -> None:
    """Whatever else stands there; an error counts as well."""
    assert failures(OUTPUT, 1) == (
        "tests/a/test_one.py::test_it[a - b]",
        "tests/a/test_one.py::test_two",
        "tests/a/test_two.py",
    )
    assert summary(OUTPUT) == "1 error, 2 failed, 2 passed"


def test_a_run_that_failed_without_naming_a_test_counts() -> None:
    """One that was killed, say, or that left files behind."""
    assert failures("no such option", 4) == (WHOLE_RUN,)
    assert summary("no such option") == "no tests"
    assert failures("=== 12 passed in 3.00s ===\n", 0) == ()
    assert summary("=== 12 passed, 1 skipped in 3.00s ===\n") == "12 passed, 1 skipped"


def test_the_table_names_each_test_with_its_rounds_and_seeds() -> None:
    """The most frequent first."""
    rounds = [Round(1, ("b",)), Round(2, ()), Round(3, ("a", "b"))]
    assert table(rounds).splitlines() == [
        "1 of 3 rounds without a failure",
        "test  rounds  seeds",
        "b          2  1 3",
        "a          1  3",
    ]
    assert table([Round(1, ())]) == "1 of 1 rounds without a failure"
