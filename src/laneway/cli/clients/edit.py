"""Edits one value in a config text, and checks by parsing the result that nothing else has changed.

`json_text` and `toml_text` do the edits; a mistake of theirs is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laneway.cli.clients import json_text, toml_text
from laneway.cli.registrations import parse

Keys = tuple[str, ...]


def look(tree: Any, keys: Keys) -> Any:
    """The value at `keys`; None if there is none."""
    for key in keys:
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree


def put(text: str, file: Path, keys: Keys, value: Any) -> str:
    """The text with `value` at `keys`. Raises `ValueError` with a reason if that cannot be done."""
    if not text.strip() and file.suffix != ".toml":
        text = "{}\n"  # some clients create an empty file first
    expected = _tree(text, file)
    table = expected
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ValueError(f"its {key!r} is not a table")
    if isinstance(table.get(keys[-1]), dict) and isinstance(value, dict):
        return _merge(text, file, keys, table[keys[-1]], value)
    table[keys[-1]] = value
    new = toml_text.put(text, keys, value) if file.suffix == ".toml" else json_text.put(text, keys, value)
    return _checked(new, file, expected)


def _merge(text: str, file: Path, keys: Keys, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Change an existing table key by key, so that unchanged keys stay as they were written."""
    for key in old:
        if key not in new:
            text = drop(text, file, (*keys, key))
    for key, value in new.items():
        if old.get(key) != value or key not in old:
            text = put(text, file, (*keys, key), value)
    return text


def drop(text: str, file: Path, keys: Keys) -> str:
    """The text without the value at `keys`. Raises `ValueError` with a reason if that cannot be done."""
    expected = _tree(text, file)
    table = look(expected, keys[:-1])
    if not isinstance(table, dict) or keys[-1] not in table:
        raise ValueError(f"it has no {keys[-1]!r}")
    del table[keys[-1]]
    new = toml_text.drop(text, keys) if file.suffix == ".toml" else json_text.drop(text, keys)
    if file.suffix == ".toml":
        # A table without a header of its own disappears with the last table in it, and so on outwards.
        expected = _pruned(expected, _tree(new, file))
    return _checked(new, file, expected)


def _pruned(expected: Any, actual: Any) -> Any:
    if not isinstance(expected, dict) or not isinstance(actual, dict):
        return expected
    pruned = {key: _pruned(value, actual.get(key, {})) for key, value in expected.items()}
    return {key: value for key, value in pruned.items() if key in actual or value != {}}


def _tree(text: str, file: Path) -> Any:
    tree = parse(text, file)
    if not isinstance(tree, dict):
        raise ValueError("it is not an object with keys")
    return tree


def _checked(new: str, file: Path, expected: Any) -> str:
    try:
        is_right = _tree(new, file) == expected
    except (ValueError, RecursionError):
        is_right = False
    if not is_right:
        raise ValueError("it is written in a way that cannot be edited safely")
    return new
