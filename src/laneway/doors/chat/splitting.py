"""Splits long Markdown into messages of a platform: at paragraphs, with code fences closed and opened again.

Pure. Lengths are counted as the platform counts them: Telegram and JavaScript count UTF-16 units.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Measure = Callable[[str], int]

MAX_INFO_CHARS = 20
"""Of the language of a fence that is opened again."""
_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,})([^`]*)$")


def utf16_units(text: str) -> int:
    """The length of a text for Telegram: a character beyond the first 65,536 counts twice."""
    return len(text) + sum(character > "\uffff" for character in text)


def split_text(text: str, limit: int, measure: Measure = utf16_units) -> list[str]:
    """The text in pieces of at most `limit`, none of them empty.

    Cut between paragraphs where one is near, else between lines, else between words, else anywhere.
    """
    splitter = _Splitter(limit, measure)
    for line in text.strip("\n").split("\n"):
        splitter.add(line)
    return splitter.finish()


def head_of(text: str, limit: int, measure: Measure = utf16_units) -> str:
    """As much of the beginning as fits."""
    if measure(text) <= limit:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle]) <= limit else (low, middle - 1)
    return text[:low]


def tail_of(text: str, limit: int, measure: Measure = utf16_units) -> str:
    """As much of the end as fits, from the beginning of a line where one is near."""
    if measure(text) <= limit:
        return text
    tail = head_of(text[::-1], limit, measure)[::-1]
    return tail[tail.find("\n", 0, len(tail) // 2) + 1 :]


class _Splitter:
    """Collects lines into pieces."""

    def __init__(self, limit: int, measure: Measure) -> None:
        self._limit = limit
        self._measure = measure
        self._pieces: list[str] = []
        self._lines: list[str] = []
        self._size = 0
        """Of the lines with their line ends."""
        self._paragraph: int | None = None
        """How many of the lines come before the last blank one, outside of code."""
        self._fence = ""
        self._opening = ""
        """The line with which the open code block is opened again."""
        self._opened_lines = 0
        """Lines of this piece that only open the code block again."""

    def add(self, line: str) -> None:
        for part in self._parts(line):
            self._add(part)

    def finish(self) -> list[str]:
        self._flush(len(self._lines))
        return self._pieces

    def _parts(self, line: str) -> list[str]:
        """The line, cut where it alone would not fit."""
        room = max(1, self._limit - self._overhead() - 2)
        parts = []
        while self._measure(line) > room:
            head = head_of(line, room, self._measure) or line[:1]
            blank = head.rfind(" ")
            if not self._fence and blank > len(head) // 2:
                head = head[: blank + 1]
            parts.append(head)
            line = line[len(head) :]
        return [*parts, line]

    def _overhead(self) -> int:
        """What opening and closing of a code block takes."""
        if not self._fence:
            return 0
        return self._measure(self._opening) + self._measure(self._fence) + 2

    def _add(self, line: str) -> None:
        fence = _FENCE.match(line)
        while not self._fits(line, fence) and len(self._lines) > self._opened_lines:
            self._cut()
        if fence is not None and not self._fence:
            self._fence = fence[1]
            info = fence[2].strip().split(" ")[0][:MAX_INFO_CHARS]
            self._opening = self._fence + info
        elif fence is not None and fence[1].startswith(self._fence) and not fence[2].strip():
            self._fence = self._opening = ""
            if self._opened_lines and len(self._lines) == self._opened_lines:
                self._clear()  # nothing of the code is left for this piece
                return
        self._append(line)
        if not line.strip() and not self._fence:
            self._paragraph = len(self._lines) - 1

    def _fits(self, line: str, fence: re.Match[str] | None) -> bool:
        size = self._size + self._measure(line)
        closing = self._fence or (fence[1] if fence is not None else "")
        if closing:
            size += self._measure(closing) + 1
        return size <= self._limit

    def _cut(self) -> None:
        """End the piece, at its last paragraph if that leaves it half full at least."""
        at = len(self._lines)
        if self._paragraph is not None and not self._fence:
            used = sum(self._measure(line) + 1 for line in self._lines[: self._paragraph])
            at = self._paragraph if used * 2 >= self._limit else at
        rest = self._lines[at:]
        self._flush(at)
        for line in rest:
            if line.strip() or self._lines:
                self._append(line)

    def _flush(self, count: int) -> None:
        lines = self._lines[:count]
        has_words = any(line.strip() for line in lines[self._opened_lines :])
        if self._fence and has_words:
            lines.append(self._fence)
        piece = "\n".join(lines).strip("\n")
        if has_words and piece.strip():
            self._pieces.append(piece)
        self._clear()
        if self._fence:
            self._append(self._opening)
            self._opened_lines = 1

    def _clear(self) -> None:
        self._lines, self._size, self._paragraph, self._opened_lines = [], 0, None, 0

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._size += self._measure(line) + 1
