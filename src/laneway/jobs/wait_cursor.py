"""Cursors of waits: which ended jobs a caller has been told of, so that it hears of each one once.

Pure. A cursor is a set of ended numbers as ranges (`w1:3-9,12`), so that nothing has to be kept for it, an
answer that got lost can be asked for again, and calls for different jobs may share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from laneway.base.errors import BadCursor

VERSION = "w1:"
MAX_CHARS = 16 * 1024
_RANGES = re.compile(r"(\d{1,18}(-\d{1,18})?(,\d{1,18}(-\d{1,18})?)*)?")


def extended(cursor: str | None, numbers: Iterable[int]) -> str:
    """The cursor with further ended numbers."""
    ranges: list[tuple[int, int]] = []
    for first, last in sorted((*_ranges(cursor), *((number, number) for number in numbers))):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], last)
        else:
            ranges.append((first, last))
    return VERSION + ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def has(cursor: str | None, number: int) -> bool:
    return any(first <= number <= last for first, last in _ranges(cursor))


def _ranges(cursor: str | None) -> list[tuple[int, int]]:
    if cursor is None:
        return []
    body = cursor.removeprefix(VERSION)
    if not cursor.startswith(VERSION) or len(cursor) > MAX_CHARS or not _RANGES.fullmatch(body):
        raise BadCursor
    pairs = [part.partition("-") for part in body.split(",")] if body else []
    ranges = [(int(first), int(last or first)) for first, _, last in pairs]
    if any(first > last for first, last in ranges):
        raise BadCursor
    return ranges
