"""Long texts in messages: every piece fits, nothing is lost, code stays code."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from laneway.doors.chat.splitting import head_of, split_text, tail_of, utf16_units

LIMIT = 120
LINES = st.lists(
    st.one_of(
        st.text("abc \U0001f600é", max_size=300),
        st.sampled_from(["", "", "```", "```py", "````", "~~~", "- item", "    code()"]),
    ),
    max_size=40,
)


def words(text: str) -> str:
    """The text without blanks and without lines that only fence."""
    kept = [line for line in text.split("\n") if not re.match(r"\s*(```|~~~)", line)]
    return re.sub(r"\s", "", "".join(kept))


def open_fences(piece: str) -> str:
    """The fence that is open at the end."""
    fence = ""
    for line in piece.split("\n"):
        match = re.match(r"\s{0,12}(`{3,}|~{3,})([^`]*)$", line)
        if match and not fence:
            fence = match[1]
        elif match and match[1].startswith(fence) and not match[2].strip():
            fence = ""
    return fence


@given(LINES)
def test_every_piece_fits_and_the_words_are_all_there_in_order(lines: list[str]) -> None:
    text = "\n".join(lines)
    pieces = split_text(text, LIMIT)
    assert all(0 < utf16_units(piece) <= LIMIT for piece in pieces)
    assert "".join(words(piece) for piece in pieces) == words(text)


@given(LINES)
def test_code_that_is_cut_is_closed_and_opened_again(lines: list[str]) -> None:
    """Also where the text itself leaves its last block open."""
    for piece in split_text("\n".join(lines), LIMIT):
        assert open_fences(piece) == ""


def test_a_long_block_of_code_is_code_in_every_message() -> None:
    text = (
        "Look:\n\n```python\n"
        + "\n".join(f"line_{number} = {number}" for number in range(30))
        + "\n```\nDone."
    )
    pieces = split_text(text, LIMIT)
    assert len(pieces) > 2
    assert all(piece.startswith(("Look:", "```python\n")) for piece in pieces)
    assert pieces[-1].endswith("```\nDone.")


def test_the_cut_is_between_paragraphs_where_one_is_near() -> None:
    first, second = "a " * 35, "b " * 40
    assert split_text(f"{first.strip()}\n\n{second.strip()}", LIMIT) == [first.strip(), second.strip()]


def test_a_character_beyond_the_first_plane_counts_twice_and_is_never_halved() -> None:
    pieces = split_text("\U0001f600" * 100, LIMIT)
    assert [utf16_units(piece) for piece in pieces] == [118, 82]


def test_a_text_without_words_gives_no_message() -> None:
    assert split_text("\n \n", LIMIT) == []


def test_head_and_tail_fit_and_the_tail_begins_with_a_line() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    assert text.startswith(head_of(text, 50))
    assert utf16_units(head_of(text, 50)) == 50
    assert text.endswith(tail_of(text, 50))
    assert tail_of(text, 50).startswith("line ")
    assert head_of("short", 50) == tail_of("short", 50) == "short"
