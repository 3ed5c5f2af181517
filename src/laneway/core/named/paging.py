"""Cursors for pages of a changing list: a cursor names the last row of a page, not a number of rows.

Pure. A row that does not change is listed exactly once, whatever is added or removed between two
pages; one that moves is listed at its new position. A cursor belongs to the filters that it was made
with: with others, or if it is not ours, it is a `BadCursor`.
"""

from __future__ import annotations

import binascii
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from laneway.base.errors import BadCursor

VERSION = 1


class PagePosition(msgspec.Struct, frozen=True, order=True):
    """The position of a session in the list. The greatest comes first."""

    is_live: bool
    last_active: str
    agent_id: str


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    version: int
    filters: int
    position: tuple[bool, str, str]


def cursor_after(position: PagePosition, filters: Any) -> str:
    """The cursor of the page that begins after this row."""
    cursor = _Cursor(VERSION, _digest(filters), (position.is_live, position.last_active, position.agent_id))
    return urlsafe_b64encode(msgspec.json.encode(cursor)).rstrip(b"=").decode()


def position_of(cursor: str, filters: Any) -> PagePosition:
    """The position of the last row of the page before this cursor."""
    try:
        data = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        decoded = msgspec.json.decode(data, type=_Cursor)
    except (UnicodeEncodeError, UnicodeDecodeError, binascii.Error, msgspec.DecodeError, RecursionError):
        raise BadCursor from None
    if decoded.version != VERSION or decoded.filters != _digest(filters):
        raise BadCursor
    return PagePosition(*decoded.position)


def _digest(filters: Any) -> int:
    return zlib.crc32(msgspec.json.encode(filters))
