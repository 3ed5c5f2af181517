"""Text of others on a terminal: every row of it marked as theirs, none of it wider than the screen.

A line that a command or a model made up could otherwise look like our own menu, also by way of a
long line that the terminal wraps. Control characters are made visible (`laneway.base.plain`).
"""

from __future__ import annotations

from collections.abc import Callable

from laneway.base.plain import plain

MARK = "  │ "
"""Stands before every line of others' text."""
GOES_ON = "  ┊ "
"""Stands before the rest of a line that did not fit."""
MIN_COLUMNS = 20
"""A terminal narrower than this wraps by itself: nothing could be read there anyway."""
TAB = " " * 4
_ALWAYS_NARROW = 0x1100
"""Characters before this are one cell wide at most; behind it some are two, and terminals differ on which."""


def fenced(
    text: str,
    columns: int | None,
    *,
    mark: str = MARK,
    goes_on: str = GOES_ON,
    visible: Callable[[str], str] = plain,
) -> list[str]:
    """The rows of a text of others, each behind a mark; wrapped by us where a terminal has `columns`.

    `visible` is `plain_code` for what is run or opened as it stands: a command, a path.
    """
    rows: list[str] = []
    columns = None if columns is None else max(columns, MIN_COLUMNS)
    for line in visible(text).replace("\t", TAB).split("\n"):
        pieces = wrapped(line, columns, cells(mark))
        rows += [(goes_on if number else mark) + piece for number, piece in enumerate(pieces)]
    return rows


def label(text: str, columns: int | None) -> str:
    """A text of others as part of one line of ours: its line breaks gone, cut to so many cells."""
    line = " ".join(plain(text).split())
    if columns is None or cells(line) <= columns:
        return line
    return wrapped(line, columns - cells("…"), 0)[0] + "…"


def wrapped(line: str, columns: int | None, used: int) -> list[str]:
    """A line in pieces that fit `columns` less what is `used`; the line itself where there is no bound."""
    if columns is None:
        return [line]
    room = max(columns - used, 2)  # the widest letter
    if len(line) * 2 <= room or (line.isascii() and len(line) <= room):
        return [line]
    pieces: list[str] = []
    start = taken = 0
    for at, letter in enumerate(line):
        wide = 1 if ord(letter) < _ALWAYS_NARROW else 2
        if taken + wide > room:
            pieces.append(line[start:at])
            start, taken = at, 0
        taken += wide
    return [*pieces, line[start:]]


def cells(text: str) -> int:
    """How many cells a text takes, at most: what may be wide counts as wide, what has no width as one."""
    return len(text) + sum(ord(letter) >= _ALWAYS_NARROW for letter in text)
