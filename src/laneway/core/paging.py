"""Pages of a list that changes: a cursor names the last row that was shown, not a number of rows.

Pure. A row that stays as it was is shown exactly once, whatever comes and goes between two pages; one
that changes its place is shown where it is by then. A cursor belongs to the filters that it was made
with: with others, or if it is none of ours, it is a `BadCursor`.
"""

from __future__ import annotations

import binascii
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from laneway.base.errors import BadCursor

VERSION = 1


class Place(msgspec.Struct, frozen=True, order=True):
    """Where a session stands in the list. The greatest comes first."""

    is_live: bool
    last_active: str
    agent_id: str


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    version: int
    filters: int
    place: tuple[bool, str, str]


def cursor_after(place: Place, filters: Any) -> str:
    """What leads to the page behind this row."""
    mark = _Cursor(VERSION, _digest(filters), (place.is_live, place.last_active, place.agent_id))
    return urlsafe_b64encode(msgspec.json.encode(mark)).rstrip(b"=").decode()


def place_of(cursor: str, filters: Any) -> Place:
    """The last row that whoever brings this cursor was shown."""
    try:
        data = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        mark = msgspec.json.decode(data, type=_Cursor)
    except (UnicodeEncodeError, UnicodeDecodeError, binascii.Error, msgspec.DecodeError, RecursionError):
        raise BadCursor from None
    if mark.version != VERSION or mark.filters != _digest(filters):
        raise BadCursor
    return Place(*mark.place)


def _digest(filters: Any) -> int:
    return zlib.crc32(msgspec.json.encode(filters))
