"""Foreign text on a terminal: every row is marked as foreign, and none is wider than the screen.

Otherwise a line from a command or a model could look like our own menu, even as part of a long
line that the terminal wraps. Control characters are made visible (`laneway.base.plain`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from laneway.base.plain import plain

MARK = "  │ "
"""Before every line of foreign text."""
GOES_ON = "  ┊ "
"""Before the rest of a line that did not fit."""
MIN_COLUMNS = 20
"""In a narrower terminal nothing could be read anyway: there we let the terminal wrap."""
TAB = " " * 4
_ALWAYS_NARROW = 0x1100
"""Characters below this take one cell at most; above it some take two, and terminals differ on which."""


def fenced(
    text: str,
    columns: int | None,
    *,
    mark: str = MARK,
    goes_on: str = GOES_ON,
    visible: Callable[[str], str] = plain,
) -> list[str]:
    """The rows of a foreign text, each with a mark; wrapped by us to `columns` if given.

    `visible` is `plain_code` for what is used literally: a command, a path.
    """
    rows: list[str] = []
    columns = None if columns is None else max(columns, MIN_COLUMNS)
    for line in visible(text).replace("\t", TAB).split("\n"):
        pieces = wrapped(line, columns, cells(mark))
        rows += [(goes_on if number else mark) + piece for number, piece in enumerate(pieces)]
    return rows


def encodable(text: str, stream: TextIO) -> str:
    """The text with escapes for what a stream cannot encode: nothing is lost in a locale of ASCII."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def label(text: str, columns: int | None) -> str:
    """Foreign text as part of a line of ours: without line breaks, cut to that many cells."""
    line = " ".join(plain(text).split())
    if columns is None or cells(line) <= columns:
        return line
    return wrapped(line, columns - cells("…"), 0)[0] + "…"


def wrapped(line: str, columns: int | None, used: int) -> list[str]:
    """A line in pieces that fit `columns` minus `used`; the line itself if there is no limit."""
    if columns is None:
        return [line]
    max_cells = max(columns - used, 2)  # the widest character
    if len(line) * 2 <= max_cells or (line.isascii() and len(line) <= max_cells):
        return [line]
    pieces: list[str] = []
    start = width = 0
    for at, character in enumerate(line):
        cell_count = 1 if ord(character) < _ALWAYS_NARROW else 2
        if width + cell_count > max_cells:
            pieces.append(line[start:at])
            start, width = at, 0
        width += cell_count
    return [*pieces, line[start:]]


def cells(text: str) -> int:
    """How many cells a text takes at most: possibly wide characters count as two, zero-width ones as one."""
    return len(text) + sum(ord(letter) >= _ALWAYS_NARROW for letter in text)
