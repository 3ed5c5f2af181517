"""JSON data for the page, with characters that hide, reorder or forge text spelt out."""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.plain import plain, plain_code

PROSE = frozenset({"lastMessage", "text", "message", "title", "prompt", "summary", "last_text"})
"""Fields that hold prose; all others hold names, paths or code."""


def shown(value: Any, field: str = "") -> Any:
    """The same data, fit to be shown as text."""
    match value:
        case str():
            return plain(value) if field in PROSE else plain_code(value)
        case dict():
            return {plain_code(str(key)): shown(each, str(key)) for key, each in value.items()}
        case list() | tuple():
            return [shown(each, field) for each in value]
        case msgspec.Struct():
            return shown(msgspec.to_builtins(value), field)
        case _:
            return value
