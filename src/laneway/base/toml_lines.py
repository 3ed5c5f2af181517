"""Finds the line on which a key of a TOML text is set, which `tomllib` does not report.

Reads statements only (headers and `key = value`), skipping values by their brackets and
quotes; a key inside an inline table is found where its statement begins. Meant for text
that `tomllib` has accepted; on anything else it stops early and never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Keys = tuple[str, ...]

MAX_KEY_PARTS = 32
"""Parts of one dotted key. `tomllib` needs memory by the square of them: 8,000 cost 260 MB."""

_QUOTED = r'"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\''
BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*+)*+")
_PART = re.compile(rf"[ \t]*+([A-Za-z0-9_-]++|{_QUOTED})[ \t]*+")
PIECE = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}+(?!"))*+"{3,5}+'
    r"|'''(?:[^']|'{1,2}+(?!'))*+'{3,5}+"
    rf"|{_QUOTED}|#[^\n]*+|[\[{{]|[\]}}]|\n|[^\"'#\[\]{{}}\n]++",
    re.DOTALL,
)
_DEEP = re.compile(rf"(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]++|{_QUOTED})[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}")


def too_deep(text: str) -> int | None:
    """The line of a dotted key with too many parts, to be checked before `tomllib` parses it."""
    match = _DEEP.search(text)
    return None if match is None else text.count("\n", 0, match.start()) + 1


class TomlLines:
    """The line of every statement of a text."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Keys, int] = {}
        for keys, line in _statements(text):
            self._lines.setdefault(keys, line)

    def find(self, keys: Keys) -> int | None:
        """Where a key is set, or else the table or inline table that it is in."""
        for length in range(len(keys), 0, -1):
            line = self._lines.get(keys[:length])
            if line is not None:
                return line
        return None


def _statements(text: str) -> Iterator[tuple[Keys, int]]:
    table: Keys = ()
    position, line, counted = 0, 1, 0
    while True:
        position = _end(BLANK, text, position)
        line, counted = line + text.count("\n", counted, position), position
        if position >= len(text):
            return
        opening = len(text[position : position + 2]) - len(text[position : position + 2].lstrip("["))
        keys, position = dotted(text, position + opening)
        if not keys:
            return
        if opening:
            table = keys
            yield table, line
            position = text.find("\n", position)
            position = len(text) if position < 0 else position
        else:
            yield (*table, *keys), line
            position = _skip_value(text, position)


def dotted(text: str, position: int) -> tuple[Keys, int]:
    """The parts of the key that begins at this position, and where it ends; none if there is no key."""
    keys: list[str] = []
    while (part := _PART.match(text, position)) is not None:
        keys.append(_unquoted(part[1]))
        position = part.end()
        if text[position : position + 1] != ".":
            break
        position += 1
    return tuple(keys), position


def _unquoted(part: str) -> str:
    if part[0] == "'":
        return part[1:-1]
    if part[0] != '"':
        return part
    import tomllib

    try:
        return str(tomllib.loads(f"x = {part}")["x"])
    except ValueError:
        return part


def _skip_value(text: str, position: int) -> int:
    """To the end of the line on which a value ends."""
    depth = 0
    while (piece := PIECE.match(text, position)) is not None:
        position = piece.end()
        if piece[0] in "[{":
            depth += 1
        elif piece[0] in "]}":
            depth -= 1
        elif piece[0] == "\n" and depth <= 0:
            return position
    return len(text)


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()
