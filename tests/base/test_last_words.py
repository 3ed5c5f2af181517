"""What a program said last, fit for a sentence."""

from __future__ import annotations

import pytest

from laneway.base.errors import EngineLost
from laneway.base.last_words import MAX_CHARS, last_words


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        ("", ""),
        (" \n\n", ""),
        ("Error: no\n", "Error: no"),
        ("one\ntwo\n\nthree\nfour\n", "two\nthree\nfour"),
        ("\x1b[31mError\x1b[0m: no", "Error: no"),
        ("Error: no\n\nStack backtrace:\n   0: <unknown>\n   1: <unknown>\n", "Error: no"),
        ("   5: <unknown>\n   6: <unknown>\n", ""),
        ("token=sk-abcdefghijklmnopqrstuv", "token=[redacted]"),
        ("back\u202ewards", "back\\u202ewards"),
    ],
)
def test_the_last_lines_are_told_without_what_must_not_be_shown(tail: str, words: str) -> None:
    """No colours, no stack, no secret, nothing invisible."""
    assert last_words(tail) == words


def test_last_words_are_few() -> None:
    """Whatever a program wrote."""
    assert len(last_words("x" * 100_000)) <= MAX_CHARS + 1


def test_an_engine_that_ended_is_told_with_its_last_words() -> None:
    """The sentence is the same without any."""
    assert str(EngineLost("exit code 1")) == "Codex ended unexpectedly: exit code 1"
    assert str(EngineLost("exit code 1", "Error: no\n")) == (
        "Codex ended unexpectedly: exit code 1; it said: Error: no"
    )
