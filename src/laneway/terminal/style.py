"""Colours and sizes of a terminal."""

from __future__ import annotations

import os
from typing import TextIO

FALLBACK_COLUMNS, FALLBACK_ROWS = 80, 24
"""For a terminal that does not report its size."""


class Style:
    """Adds colours to text for a terminal, unless NO_COLOR is set."""

    def __init__(self, stream: TextIO) -> None:
        self.is_on = stream.isatty() and "NO_COLOR" not in os.environ and not is_dumb()

    def __call__(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.is_on else text

    def dim(self, text: str) -> str:
        return self("2", text)

    def bold(self, text: str) -> str:
        return self("1", text)

    def green(self, text: str) -> str:
        return self("32", text)

    def red(self, text: str) -> str:
        return self("31", text)

    def yellow(self, text: str) -> str:
        return self("33", text)

    def cyan(self, text: str) -> str:
        return self("36", text)


def is_dumb() -> bool:
    """Whether `TERM` says that the terminal cannot move its cursor."""
    return os.environ.get("TERM", "") in ("", "dumb")


def size(stream: TextIO) -> tuple[int, int]:
    """Columns and rows of a terminal now: people resize windows."""
    try:
        reported = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError, AttributeError):  # not a file, or closed
        return FALLBACK_COLUMNS, FALLBACK_ROWS
    return reported.columns or FALLBACK_COLUMNS, reported.lines or FALLBACK_ROWS


def width(stream: TextIO) -> int | None:
    """Columns of a terminal; `None` for other streams, where nothing needs to be wrapped or cut."""
    return size(stream)[0] if stream.isatty() else None
