"""Rows on a terminal that are drawn again in place: one write for each change, and nothing is erased first.

Only rows that differ are written anew, so nothing flickers. The cursor is hidden meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from laneway.terminal.foreign import cells
from laneway.terminal.style import size

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
ERASE_TO_END, ERASE_BELOW = "\x1b[K", "\x1b[J"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class LiveTable:
    """Call `draw` with all rows each time; `close` leaves the last ones on the screen."""

    def __init__(self, stream: TextIO, measured: Callable[[TextIO], tuple[int, int]] = size) -> None:
        self._stream = stream
        self._measured = measured
        self._rows: list[str] = []
        self._columns = 0
        self._is_begun = False

    def draw(self, rows: Sequence[str]) -> None:
        """Rows that are not wider than the terminal, and fewer than it has: others cannot be reached."""
        columns, _ = self._measured(self._stream)
        if list(rows) == self._rows and columns == self._columns:
            return
        self._write("".join((*self._begin(), *self._redraw(rows, columns))))
        self._rows, self._columns = list(rows), columns

    def close(self) -> None:
        if self._is_begun:
            self._write(SHOW_CURSOR)

    def _begin(self) -> Iterator[str]:
        if not self._is_begun:
            self._is_begun = True
            yield HIDE_CURSOR

    def _redraw(self, rows: Sequence[str], columns: int) -> Iterator[str]:
        """From the line below the last row back to the first one, and down again."""
        is_resized = columns != self._columns
        height = sum(_height(row, columns) for row in self._rows) if is_resized else len(self._rows)
        if height:
            yield f"\x1b[{height}A\r"
        if is_resized:
            yield ERASE_BELOW  # a terminal breaks lines anew when it gets narrower
        for number, row in enumerate(rows):
            is_same = not is_resized and number < len(self._rows) and self._rows[number] == row
            yield "\r\n" if is_same else f"{row}{ERASE_TO_END}\r\n"
        if len(rows) < len(self._rows) and not is_resized:
            yield ERASE_BELOW

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _height(row: str, columns: int) -> int:
    """The lines that a row takes in a terminal of this width."""
    return max(1, -(-cells(_COLOUR.sub("", row)) // max(1, columns)))
