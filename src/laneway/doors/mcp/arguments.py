"""Checks the arguments of `codex` and `codex-reply` as the removed `codex mcp-server` did, in its words.

Pure. The first mistake, in the order in which the fields were given, is reported. What older versions
took and 0.153.4 refused (`untrusted`, `on-failure`, `profile`, `include-plan-tool`) is accepted again
and means what it meant.
"""

from __future__ import annotations

import re
import uuid
from typing import Any

SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
POLICIES = ("on-request", "never")
OLDER_POLICIES = {"untrusted": "untrusted", "on-failure": "on-request"}
"""Codex dropped `on-failure`; `on-request` is what became of it."""

_FIELDS = (
    "prompt",
    "model",
    "cwd",
    "approval-policy",
    "sandbox",
    "config",
    "base-instructions",
    "developer-instructions",
    "compact-prompt",
)
_OLDER_FIELDS = ("profile", "include-plan-tool")
_GROUPS = (8, 4, 4, 4, 12)
_CANONICAL = re.compile("-".join(f"[0-9a-f]{{{length}}}" for length in _GROUPS))
"""A UUID as Codex writes them."""


class BadArgument(ValueError):
    """An argument that cannot be used, in one sentence as Rust's serde would word it."""


def of_codex(arguments: dict[str, Any], *, also: tuple[str, ...] = ()) -> dict[str, Any]:
    """The arguments of `codex` by their names; `also` are fields that the caller checks itself."""
    checked: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in (*_FIELDS, *_OLDER_FIELDS, *also):
            known = ", ".join(f"`{field}`" for field in (*_FIELDS, *also))
            raise BadArgument(f"unknown field `{name}`, expected one of {known}")
        if value is None and name != "prompt":
            continue
        checked[name] = value if name in also else _checked(name, value)
    if "prompt" not in checked and "prompt" not in also:
        raise BadArgument("missing field `prompt`")
    return checked


def of_reply(arguments: dict[str, Any], *, also: tuple[str, ...] = ()) -> dict[str, Any]:
    """The arguments of `codex-reply`; unknown ones are ignored, as the old server did."""
    checked: dict[str, Any] = {}
    for name in ("prompt", "threadId", "conversationId"):
        if name in arguments and (name == "prompt" or arguments[name] is not None):
            checked[name] = _text(arguments[name])
    checked |= {name: _text(arguments[name]) for name in also if arguments.get(name) is not None}
    if "prompt" not in checked:
        raise BadArgument("missing field `prompt`")
    return checked


def thread_id(text: str) -> str:
    """A thread's id in its canonical form, from any form of a UUID."""
    if _CANONICAL.fullmatch(text):
        return text
    bare = text.strip("{}").removeprefix("urn:uuid:")
    invalid = re.search(r"[^0-9a-fA-F-]", bare)
    if invalid:
        at = text.index(invalid[0]) + 1
        raise BadArgument(
            "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], "
            f"found `{invalid[0]}` at {at}"
        )
    groups = bare.split("-")
    if len(groups) == 1 and len(bare) != 32:
        raise BadArgument(f"invalid length: expected length 32 for simple format, found {len(bare)}")
    if len(groups) > 1:
        if len(groups) != len(_GROUPS):
            raise BadArgument(f"invalid group count: expected 5, found {len(groups)}")
        for number, (group, length) in enumerate(zip(groups, _GROUPS, strict=True)):
            if len(group) != length:
                raise BadArgument(
                    f"invalid group length in group {number}: expected {length}, found {len(group)}"
                )
    return str(uuid.UUID(bare))


def _checked(name: str, value: Any) -> Any:
    match name:
        case "config":
            if not isinstance(value, dict):
                raise BadArgument(f"invalid type: {_kind(value)}, expected a map")
            return value
        case "include-plan-tool":
            if not isinstance(value, bool):
                raise BadArgument(f"invalid type: {_kind(value)}, expected a boolean")
            return value
        case "sandbox":
            return _word(value, SANDBOXES, {})
        case "approval-policy":
            return _word(value, POLICIES, OLDER_POLICIES)
        case _:
            return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadArgument(f"invalid type: {_kind(value)}, expected a string")
    return value


def _word(value: Any, known: tuple[str, ...], older: dict[str, str]) -> str:
    if isinstance(value, dict):
        raise BadArgument("invalid value: map, expected map with a single key")
    if not isinstance(value, str):
        raise BadArgument(f"invalid type: {_kind(value)}, expected string or map")
    if value in older:
        return older[value]
    if value in known:
        return value
    names = [f"`{name}`" for name in known]
    expected = " or ".join(names) if len(names) == 2 else "one of " + ", ".join(names)
    raise BadArgument(f"unknown variant `{value}`, expected {expected}")


def _kind(value: Any) -> str:
    match value:
        case bool():
            return f"boolean `{str(value).lower()}`"
        case None:
            return "null"
        case int() | float():
            return "number"
        case str():
            return f'string "{value[:100]}"'
        case list():
            return "sequence"
        case _:
            return "map"
