"""Values of others as JSON for people. Pure."""

from __future__ import annotations

from typing import Any

from laneway.base.plain import fenced, plain_code


def as_json(value: Any) -> str:
    import json  # two milliseconds of start-up for what hardly ever comes

    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def as_code(value: Any) -> str:
    """In a fence, with nothing hidden in it."""
    return fenced(plain_code(as_json(value)), "json")


def visible(value: Any) -> Any:
    """The same with all its texts made visible. Codex's JSON is not deep: it was read by a recursion."""
    match value:
        case str():
            return plain_code(value)
        case list():
            return [visible(each) for each in value]
        case dict():
            return {plain_code(key): visible(each) for key, each in value.items()}
        case _:
            return value
