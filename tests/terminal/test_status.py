"""The status line: what, how long, how much; in one row, and gone when it is not wanted."""

from __future__ import annotations

import asyncio
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.terminal.foreign import cells
from laneway.terminal.status import StatusLine, count, elapsed, status_text
from tests.terminal.test_markdown import Window


@given(st.text(), st.floats(0, 1e6), st.integers(0, 10**9), st.integers(40, 300))
def test_it_never_wraps(what: str, seconds: float, tokens: int, columns: int) -> None:
    """A line that wraps cannot be erased."""
    text = status_text(what, seconds, tokens, columns)
    assert cells(text) <= columns
    assert "\n" not in text


def test_it_says_what_and_how_long_and_how_much() -> None:
    """In words of everybody."""
    assert status_text("Thinking", 7.9, 12345, 80) == "Thinking · 7 s · 12.3k tokens · Ctrl-C stops"
    assert (elapsed(59.9), elapsed(185), elapsed(3840)) == ("59 s", "3 min 5 s", "1 h 4 min")
    assert (count(999), count(1000), count(1_250_000)) == ("999", "1.0k", "1.2M")


@pytest.mark.parametrize(
    ("term", "is_tty", "is_drawn"), [("xterm", True, True), ("dumb", True, False), ("xterm", False, False)]
)
async def test_it_is_drawn_only_where_it_can_be_erased(
    term: str, is_tty: bool, is_drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in a pipe, and not on a terminal that says it is dumb."""
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Window() if is_tty else io.StringIO()
    status = StatusLine(stream)
    status.start("Thinking")
    assert ("Thinking · 0 s" in stream.getvalue()) is is_drawn
    status.close()
    assert stream.getvalue().endswith("\r\x1b[J") is is_drawn


async def test_without_colour_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR is about colours: the line is still there."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Window()
    status = StatusLine(stream)
    status.start("Thinking")
    status.close()
    assert "\x1b[3" not in stream.getvalue()
    assert "| Thinking" in stream.getvalue() or "/ Thinking" in stream.getvalue()


async def test_it_waits_for_a_free_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a sentence of the answer is not drawn over."""
    monkeypatch.setenv("TERM", "xterm")
    stream, is_free, ticked = Window(), False, asyncio.Event()

    def free() -> bool:
        ticked.set()
        return is_free

    status = StatusLine(stream)
    status.start("Answering", free)
    assert stream.getvalue() == ""
    is_free = True
    async with asyncio.timeout(20):
        while "Answering" not in stream.getvalue():
            ticked.clear()
            await ticked.wait()
    status.close()
