"""Formats foreign values as JSON for display: bare or in a code block, with hidden characters shown. Pure."""

from __future__ import annotations

from typing import Any

from laneway.base.plain import fenced, plain_code


def as_json(value: Any) -> str:
    import json  # rarely needed, and costs two milliseconds of start-up

    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def as_code(value: Any) -> str:
    """As a fenced block with hidden characters shown."""
    return fenced(plain_code(as_json(value)), "json")


def visible(value: Any) -> Any:
    """The same value with the hidden characters of all its texts shown.

    Recursion is safe: Codex's JSON was parsed by a recursive parser, so it is not too deep.
    """
    match value:
        case str():
            return plain_code(value)
        case list():
            return [visible(each) for each in value]
        case dict():
            return {plain_code(key): visible(each) for key, each in value.items()}
        case _:
            return value
