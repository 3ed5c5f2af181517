r"""Paths as text that survives JSON and SQLite, whatever bytes a file name has.

A path is its UTF-8 text. One that is not UTF-8, or begins with a quote, is put into quotes, with
backslashes and the odd bytes spelt out in octal, as git does: `"caf\351.txt"`. Reversible, and no two
paths have the same text.
"""

from __future__ import annotations

import re

GIT = b".git"
"""The name that is git's own, in every folder. Never read, never written."""

_ESCAPED = re.compile(rb'\\([0-7]{3}|["\\])')
_ODD = re.compile('[\\\\"\udc80-\udcff]')


def text_of(path: bytes) -> str:
    try:
        text = path.decode()
    except UnicodeDecodeError:
        text = path.decode(errors="surrogateescape")
    else:
        if not text.startswith('"'):
            return text
    return f'"{_ODD.sub(_escape, text)}"'


def bytes_of(text: str) -> bytes:
    """The path that has this text. Any other text is taken as it stands, or is a `ValueError`."""
    path = text.encode()
    if not text.startswith('"'):
        return path
    if len(text) < 2 or not text.endswith('"'):
        raise ValueError(text)
    return _ESCAPED.sub(_unescape, path[1:-1])


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return f"\\{ord(character) - 0xDC00:03o}" if character > "\udc00" else f"\\{character}"


def _unescape(found: re.Match[bytes]) -> bytes:
    word = found[1]
    return word if len(word) == 1 else bytes([int(word, 8) & 0xFF])


def parts_of(text: str) -> tuple[bytes, ...]:
    """The names on the way to a path. `ValueError` for one that leads out of the tree or into git's own."""
    parts = tuple(bytes_of(text).split(b"/"))
    if any(part in (b"", b".", b"..") or b"\0" in part or part.lower() == GIT for part in parts):
        raise ValueError(text)
    return parts
