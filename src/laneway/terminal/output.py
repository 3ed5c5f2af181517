"""A command's output for a terminal: its newest lines while it runs, its first and last lines at the end.

The lines between them are counted. Live lines are erased again: Codex may lose pieces of live
output, most often the first, and sends all of it at the end. Pure.
"""

from __future__ import annotations

import re
from collections import deque

HEAD_LINES = 5
"""Shown at the end: the first lines of the output."""
TAIL_LINES = 5
"""Shown at the end: the last lines, where programs say how it went."""
LIVE_LINES = 5
"""Shown while it runs."""
MAX_PART_CHARS = 4096
"""Of an unfinished line: more does not fit in a row of a terminal."""
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Colours, cursor movements and titles: of no use in lines that are shown one by one."""


class LiveOutput:
    """The newest lines of a running command."""

    def __init__(self) -> None:
        self._part = ""
        self._newest: deque[str] = deque(maxlen=LIVE_LINES)

    def feed(self, text: str) -> None:
        *lines, part = (self._part + text).split("\n")
        self._newest.extend(lines[-LIVE_LINES:])
        self._part = part[-MAX_PART_CHARS:]

    @property
    def lines(self) -> list[str]:
        part = [self._part] if self._part.strip() else []
        return [readable(line) for line in [*self._newest, *part][-LIVE_LINES:]]


def excerpt(output: str, *, is_full: bool = False) -> tuple[list[str], int, list[str]]:
    """The first lines of a complete output, how many are hidden, and the last lines."""
    lines = [readable(line) for line in output.removesuffix("\n").split("\n")] if output else []
    if is_full or len(lines) <= HEAD_LINES + TAIL_LINES:
        return lines, 0, []
    return lines[:HEAD_LINES], len(lines) - HEAD_LINES - TAIL_LINES, lines[-TAIL_LINES:]


def readable(line: str) -> str:
    """A printed line as a terminal would show it, without overwritten text and without colours."""
    line = _SEQUENCE.sub("", line).rstrip("\r")
    return line.rpartition("\r")[2] if "\r" in line else line
