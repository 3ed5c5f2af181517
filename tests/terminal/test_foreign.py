"""Text of others on a terminal: marked in every row, and never wider than the screen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from laneway.base.plain import plain
from laneway.terminal.foreign import GOES_ON, MARK, cells, fenced, label

columns = st.integers(min_value=20, max_value=200)


@given(st.text(), columns)
def test_every_row_is_marked_and_fits(text: str, width: int) -> None:
    """Whatever the text, whatever the terminal."""
    rows = fenced(text, width)
    assert all(row.startswith((MARK, GOES_ON)) and cells(row) <= width for row in rows)
    assert not any(letter in row for row in rows for letter in "\n\r\t\x1b\x9b")


@given(st.text(alphabet=st.characters(exclude_categories=["C"])), columns)
def test_nothing_of_it_is_lost(text: str, width: int) -> None:
    """The rows joined are the text, made visible."""
    joined = "".join(
        "\n" + row[len(MARK) :] if row.startswith(MARK) else row[len(GOES_ON) :]
        for row in fenced(text, width)
    )
    assert joined == "\n" + plain(text)


@given(st.text(), columns)
def test_a_label_is_one_line_that_fits(text: str, width: int) -> None:
    """However many lines the text had."""
    shown = label(text, width)
    assert cells(shown) <= width
    assert "\n" not in shown


def test_a_pipe_has_no_width() -> None:
    """Whoever reads a log searches for whole lines."""
    assert fenced("x" * 500, None) == [MARK + "x" * 500]
    assert label("a\nb" * 100, None) == "a b" * 100
