"""Loads the settings: merges flags, environment and files into one value for each key, with its source.

    flag → environment → the file that LANEWAY_CONFIG names → the repository's `.laneway.toml` → its
    `.atm.toml` → the user's `laneway/config.toml` → their `atm/config.toml` → default

Merges key by key, also inside tables. Strict inside our own tables and variables: an error there is a
`SettingError`. Settings shared with ATM are read if possible and otherwise ignored, as are those that a
repository may not set (see `vetting`): `ignored` lists them. `load` reads these files and those that a
trusted repository names, each once, and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from laneway.base import config_files
from laneway.base.config_files import ConfigFile, RepoPlace
from laneway.base.errors import SettingError
from laneway.base.kinds import Kind, PathBase, to_text
from laneway.base.layers import FoundValue, Layer
from laneway.base.named_tables import TABLES, NamedTable, names_in, table_at
from laneway.base.schema import KEY_AT, KEYS, Role, Settings
from laneway.base.setting_values import (
    Ignored,
    Keys,
    SettingValue,
    Source,
    SourceKind,
    display,
    is_secret,
    spell,
)

if TYPE_CHECKING:
    from laneway.base.vetting import Vetted

__all__ = ["Ignored", "Role", "SettingValue", "Settings", "Source", "load"]

OUR_TABLES: tuple[Keys, ...] = (("plugins", "codex-mcp"), ("plugins", "atm-agent-mcp"), ("laneway",))
"""One schema under three names; the later one wins."""
SHARED_TABLES: tuple[Keys, ...] = (("core",), ("atm",))
SHARED_NAMES = {"default_team": "team", "identity": "identity"}
SHARED_VARIABLES = ("ATM_TEAM", "ATM_IDENTITY")
NOBODY = "human"
"""ATM's identity for a person without a name."""
MAX_SHOWN_CHARS = 60
"""Of a wrong value, in the error message."""


def load(flags: Mapping[str, object], environment: Mapping[str, str], cwd: Path, home: Path) -> Settings:
    """The settings of a folder. Flags that are None were not given."""
    place = config_files.find_repo_files(cwd)
    paths = {
        "global": config_files.global_path(environment, home),
        "laneway_global": config_files.own_path(environment, home),
    }
    values: dict[Keys, SettingValue] = {
        key.keys: SettingValue(key.default, Source("default")) for key in KEYS.values()
    }
    layers = [_read_file("global", path, home) for path in paths.values()]
    for layer in layers:
        _merge(values, layer)
    vetted = list(_read_repo(place, values, environment, home))
    later_layers = [each.layer for each in vetted]
    for path in place.files:
        paths["laneway_repo" if path.name == config_files.OWN_REPO_FILE else "repo"] = path
    named_path = _named_file(environment, home)
    if named_path is not None:
        paths["named"] = named_path
        later_layers.append(_read_file("named", named_path, home))
    later_layers += [_read_environment(environment, home), _read_flags(flags, home)]
    for layer in later_layers:
        _merge(values, layer)
    return Settings(
        values,
        tuple(each for layer in (*layers, *later_layers) for each in layer.ignored),
        place,
        paths,
        tuple(each.file for each in vetted),
        {path: content for each in vetted for path, content in each.contents.items()},
    )


def _merge(values: dict[Keys, SettingValue], layer: Layer) -> None:
    values.update({each.keys: SettingValue(each.value, each.source) for each in layer.values})


def _read_repo(
    place: RepoPlace, own: Mapping[Keys, SettingValue], environment: Mapping[str, str], home: Path
) -> Iterator[Vetted]:
    """The permitted settings of the repository's files, the weakest first; `own`: those without them."""
    if not place.files:
        return
    from laneway.base.trust import trust_file  # most folders have no such file
    from laneway.base.vetting import vet

    for path in place.files:
        layer = _read_file("repo", path, home)
        yield vet(layer, path, place.root_of(path), own, environment, trust_file(environment, home))


def _named_file(environment: Mapping[str, str], home: Path) -> Path | None:
    for variable in ("LANEWAY_CONFIG", "ATM_CONFIG"):
        text = environment.get(variable, "").strip()
        if text:
            path = home / text[2:] if text.startswith("~/") else Path(text)
            if not os.path.exists(path):  # Path.exists() may raise
                raise SettingError(
                    variable, f"there is no file {to_text(text)}: correct it.", expected="a file"
                )
            return path
    return None


def _read_flags(flags: Mapping[str, object], home: Path) -> Layer:
    layer = Layer([], [])
    for name, value in flags.items():
        if value is not None:
            source, key = Source("flag", "--" + name.replace("_", "-")), KEYS[name]
            taken = _taken(key.kind, key.keys, value, source, PathBase(home))
            layer.values.append(FoundValue(key.keys, taken, source))
    return layer


def _read_environment(environment: Mapping[str, str], home: Path) -> Layer:
    layer = Layer([], [])
    for name, key in KEYS.items():
        for variable in reversed(key.variables):
            text = environment.get(variable, "").strip()  # an empty one is an unset one
            if text:
                source = Source("environment", variable)
                if variable in SHARED_VARIABLES:
                    _take_shared(layer, name, text, source)
                else:
                    value = _taken(key.kind, key.keys, key.kind.spell(text), source, PathBase(home))
                    layer.values.append(FoundValue(key.keys, value, source))
    return layer


def _read_file(kind: SourceKind, path: Path, home: Path) -> Layer:
    layer = Layer([], [])
    file = config_files.read(path)
    if file is None:
        return layer
    for where in SHARED_TABLES:
        table = _dig(file.data, where)
        for name_in_file, name in SHARED_NAMES.items():
            if isinstance(table, dict) and name_in_file in table:
                _take_shared(layer, name, table[name_in_file], _source(kind, file, (*where, name_in_file)))
    for where in OUR_TABLES:
        table = _dig(file.data, where)
        if table is not None:
            reader = _TableReader(kind, file, where, PathBase(home, path.parent))
            layer.values.extend(reader.read((), table))
    return layer


def _take_shared(layer: Layer, name: str, value: object, source: Source) -> None:
    """Take a setting shared with ATM; a value that we cannot use is ignored."""
    if name == "identity" and value == NOBODY:
        return
    try:
        layer.values.append(FoundValue((name,), KEYS[name].kind.take(value, PathBase(Path())), source))
    except ValueError:
        layer.ignored.append(Ignored((name,), value, source, f"it must be {KEYS[name].kind.expected}"))


def _dig(data: Any, where: Keys) -> Any:
    for part in where:
        data = data.get(part) if isinstance(data, dict) else None
    return data


def _source(kind: SourceKind, file: ConfigFile, keys: Keys) -> Source:
    return Source(kind, str(file.path), file.lines.find(keys))


class _TableReader:
    """Reads one of our tables of a file. Keys are places in that table: `("jobs", "k_read")`."""

    def __init__(self, kind: SourceKind, file: ConfigFile, where: Keys, place: PathBase) -> None:
        self._kind = kind
        self._file = file
        self._where = where
        self._place = place

    def read(self, at: Keys, table: Any) -> Iterator[FoundValue]:
        """The settings of our table, or of a table in it."""
        if not isinstance(table, dict):
            _refuse(self._source(at), at or self._where, "a table", table)
        # Other names first, so that a key's own name wins where both are given.
        for name in sorted(table, key=lambda name: _is_own_name((*at, name))):
            keys = (*at, name)
            if (key := KEY_AT.get(keys)) is not None:
                yield self._found(key.keys, key.kind, table[name], keys)
            elif (named := table_at(keys)) is not None:
                yield from self._entries(named, table[name])
            elif keys in TABLES:
                yield from self.read(keys, table[name])
            else:
                _unknown(self._source(keys), keys, names_in(at))

    def _entries(self, table: NamedTable, entries: Any) -> Iterator[FoundValue]:
        if not isinstance(entries, dict):
            _refuse(self._source(table.place), table.place, table.expected, entries)
        for name, entry in entries.items():
            keys = (*table.place, name)
            if table.name is not None and not table.name.accepts(name):
                _refuse(
                    self._source(keys),
                    keys,
                    f"named by {table.name.expected.removeprefix('a name of ')}",
                    entry,
                )
            if table.kind is not None:
                yield self._found(keys, table.kind, entry, keys)
                continue
            if not isinstance(entry, dict):
                _refuse(self._source(keys), keys, "a table", entry)
            for field, value in entry.items():
                if field not in table.fields:
                    _unknown(self._source((*keys, field)), (*keys, field), table.fields)
                yield self._found((*keys, field), table.fields[field], value, (*keys, field))

    def _found(self, keys: Keys, kind: Kind[Any], value: object, keys_in_file: Keys) -> FoundValue:
        source = self._source(keys_in_file)
        return FoundValue(keys, _taken(kind, keys_in_file, value, source, self._place), source)

    def _source(self, keys: Keys) -> Source:
        return _source(self._kind, self._file, (*self._where, *keys))


def _is_own_name(keys: Keys) -> bool:
    return keys not in KEY_AT or KEY_AT[keys].keys == keys


def _taken(kind: Kind[Any], keys: Keys, value: object, source: Source, place: PathBase) -> Any:
    try:
        return kind.take(value, place)
    except ValueError:
        _refuse(source, keys, kind.expected, value)


def _refuse(source: Source, keys: Keys, expected: str, value: object) -> NoReturn:
    value_text = display(keys, value) if is_secret(keys) or not isinstance(value, str) else repr(value)
    value_text = value_text if len(value_text) <= MAX_SHOWN_CHARS else value_text[:MAX_SHOWN_CHARS] + " …"
    raise SettingError(
        to_text(source.name),
        f"{spell(keys)} must be {expected}, not {value_text}.",
        line=source.line,
        key=spell(keys),
        expected=expected,
    )


def _unknown(source: Source, keys: Keys, known: Any) -> NoReturn:
    import difflib

    similar = difflib.get_close_matches(keys[-1], known, n=1)
    remedy = f"did you mean {similar[0]}?" if similar else f"known are {', '.join(sorted(known))}."
    raise SettingError(
        to_text(source.name),
        f"there is no setting {spell(keys)}; {remedy}",
        line=source.line,
        key=spell(keys),
        expected=similar[0] if similar else "a known key",
    )
