"""One change in a config text, proved by reading the result: all else must say what it said before.

The surgery is `json_text`'s and `toml_text`'s; nothing they get wrong leaves this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laneway.cli.clients import json_text, toml_text
from laneway.cli.registrations import parse

Keys = tuple[str, ...]


def look(tree: Any, keys: Keys) -> Any:
    """What is at `keys`; None if nothing is."""
    for key in keys:
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree


def put(text: str, file: Path, keys: Keys, value: Any) -> str:
    """The text with `value` at `keys`. Raises `ValueError` with a reason if that cannot be done."""
    if not text.strip() and file.suffix != ".toml":
        text = "{}\n"  # a client makes such a file before it has anything to say
    wanted = _tree(text, file)
    table = wanted
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ValueError(f"its {key!r} is not a table")
    if isinstance(table.get(keys[-1]), dict) and isinstance(value, dict):
        return _merge(text, file, keys, table[keys[-1]], value)
    table[keys[-1]] = value
    new = toml_text.put(text, keys, value) if file.suffix == ".toml" else json_text.put(text, keys, value)
    return _checked(new, file, wanted)


def _merge(text: str, file: Path, keys: Keys, old: dict[str, Any], new: dict[str, Any]) -> str:
    """A table that is there already: key by key, so that what did not change stays as it was written."""
    for key in old:
        if key not in new:
            text = drop(text, file, (*keys, key))
    for key, value in new.items():
        if old.get(key) != value or key not in old:
            text = put(text, file, (*keys, key), value)
    return text


def drop(text: str, file: Path, keys: Keys) -> str:
    """The text without what is at `keys`. Raises `ValueError` with a reason if that cannot be done."""
    wanted = _tree(text, file)
    table = look(wanted, keys[:-1])
    if not isinstance(table, dict) or keys[-1] not in table:
        raise ValueError(f"it has no {keys[-1]!r}")
    del table[keys[-1]]
    new = toml_text.drop(text, keys) if file.suffix == ".toml" else json_text.drop(text, keys)
    if file.suffix == ".toml":
        # With its last table a table that no header of its own names is gone, too.
        wanted = _pruned(wanted, _tree(new, file))
    return _checked(new, file, wanted)


def _pruned(wanted: Any, seen: Any) -> Any:
    if not isinstance(wanted, dict) or not isinstance(seen, dict):
        return wanted
    return {key: _pruned(each, seen.get(key)) for key, each in wanted.items() if key in seen or each != {}}


def _tree(text: str, file: Path) -> Any:
    tree = parse(text, file)
    if not isinstance(tree, dict):
        raise ValueError("it is not an object with keys")
    return tree


def _checked(new: str, file: Path, wanted: Any) -> str:
    try:
        is_right = _tree(new, file) == wanted
    except (ValueError, RecursionError):
        is_right = False
    if not is_right:
        raise ValueError("it is written in a way that cannot be edited safely")
    return new
