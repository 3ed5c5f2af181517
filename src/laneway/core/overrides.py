"""Config overrides for one thread: several sources merged into one nested table, before Codex sees any.

Codex takes overrides as a map of dotted keys, cuts a key at every dot (quotes do not help) and applies
them in the order of a hash map: `mcp_servers` beside `mcp_servers.a.command` came out differently from
start to start (0.133 to 0.163). Tables are merged with the user's own, so nothing is lost by nesting.

Pure. Only the keys of the outermost table are dotted paths, with TOML's quotes where a name has a dot;
inside, every key is one name. A later source wins; a key that is a value here and a table there is
refused (`ConfigRefused`), because no order of the two is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from laneway.base.errors import ConfigRefused
from laneway.base.plain import plain

KeyPath: TypeAlias = tuple[str, ...]

MAX_DEPTH = 32
"""Names in one path. Codex's own config has eight at most; more would only exhaust our stack."""
MAX_SHOWN_CHARS = 200
"""Of a key in a sentence: a model reads it, and pays for it."""
_PART = re.compile(
    r"""\s*+(?:("(?:[^"\\]|\\.)*+"|'[^']*+')|([^."'\s](?:[^."']*[^."'\s])?))\s*+(\.|\Z)""", re.DOTALL
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def merged(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """All sources as one nested table, the later over the earlier. Shares no table with any of them."""
    config: dict[str, Any] = {}
    for source in sources:
        for key, value in source.items():
            path = path_of(key)
            _put(_table_at(config, path[:-1]), path, value)
    return config


def path_of(key: str) -> KeyPath:
    """The names in a dotted key: `mcp_servers."my.server".command` has three."""
    names: list[str] = []
    at, mark = 0, "."
    while mark:
        part = _PART.match(key, at)
        if part is None:
            raise ConfigRefused(
                _cut(key), f"The config key {_cut(key)} cannot be read: separate names by dots."
            )
        names.append(part[2] if part[1] is None else _unquoted(part[1], key))
        at, mark = part.end(), part[3]
    if not _BARE.fullmatch(names[0]):
        # It cannot be sent: Codex would cut it at a dot, into something that we have not looked at.
        raise ConfigRefused(spelled(names), f"Codex has no config key {spelled(names)}.")
    _check_depth(tuple(names))
    return tuple(names)


def leaves(config: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value of a nested table with its path. An empty table is a value; so is a list, as a whole."""
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def spelled(path: KeyPath | list[str]) -> str:
    """A path as one would write it in TOML, for a sentence."""
    return _cut(".".join(name if _BARE.fullmatch(name) else f'"{name}"' for name in path))


def _table_at(config: dict[str, Any], path: KeyPath) -> dict[str, Any]:
    for depth, name in enumerate(path, 1):
        table = config.setdefault(name, {})
        if not isinstance(table, dict):
            raise _ambiguous(path[:depth])
        config = table
    return config


def _put(table: dict[str, Any], path: KeyPath, value: Any) -> None:
    """Into the table that the path ends in."""
    _check_depth(path)
    name = path[-1]
    is_known, known = name in table, table.get(name)
    if not isinstance(value, Mapping):
        if isinstance(known, dict):
            raise _ambiguous(path)
        table[name] = value
        return
    if is_known and not isinstance(known, dict):
        raise _ambiguous(path)
    inner = table.setdefault(name, {})
    for key, each in value.items():
        _put(inner, (*path, key), each)


def _ambiguous(path: KeyPath) -> ConfigRefused:
    key = spelled(path)
    return ConfigRefused(key, f"The config key {key} is given as a value and as a table: leave out one.")


def _check_depth(path: KeyPath) -> None:
    if len(path) > MAX_DEPTH:
        key = spelled(path[:2])
        raise ConfigRefused(key, f"The config under {key} is nested deeper than {MAX_DEPTH} tables.")


def _unquoted(part: str, key: str) -> str:
    if part[0] == "'" or "\\" not in part:
        return part[1:-1]
    import tomllib

    try:
        return str(tomllib.loads(f"x = {part}")["x"])
    except tomllib.TOMLDecodeError:
        raise ConfigRefused(
            _cut(key), f"The config key {_cut(key)} has an escape that TOML does not know."
        ) from None


def _cut(key: str) -> str:
    return plain(key)[:MAX_SHOWN_CHARS]
