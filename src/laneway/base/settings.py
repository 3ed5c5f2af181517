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
from laneway.base.kinds import IDENTITY, PathBase, to_text
from laneway.base.layers import FoundValue, Layer
from laneway.base.schema import KEYS, TABLE_KEYS, Key, Role, Settings
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
ROLE_KEYS: tuple[str, ...] = Role.__struct_fields__
NAMES = {also: name for name, key in KEYS.items() for also in (*key.also, name)}
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
        (name,): SettingValue(key.default, Source("default")) for name, key in KEYS.items()
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
            source = Source("flag", "--" + name.replace("_", "-"))
            layer.values.append(
                FoundValue((name,), _taken(KEYS[name], (name,), value, source, PathBase(home)), source)
            )
    return layer


def _read_environment(environment: Mapping[str, str], home: Path) -> Layer:
    layer = Layer([], [])
    for name, key in KEYS.items():
        for variable in reversed(key.variables):
            text = environment.get(variable, "").strip()  # an empty one is an unset one
            if text:
                source, keys = Source("environment", variable), (name,)
                if variable in SHARED_VARIABLES:
                    _take_shared(layer, name, text, source)
                else:
                    value = _taken(key, keys, key.kind.spell(text), source, PathBase(home))
                    layer.values.append(FoundValue(keys, value, source))
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
            layer.values.extend(_read_table(kind, file, where, table, PathBase(home, path.parent)))
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


def _read_table(
    kind: SourceKind, file: ConfigFile, where: Keys, table: Any, place: PathBase
) -> Iterator[FoundValue]:
    if not isinstance(table, dict):
        _refuse(_source(kind, file, where), where, "a table", table)
    # Other names first, so that a key's own name wins where both are given.
    for name_in_file in sorted(
        table, key=lambda name_in_file: NAMES.get(name_in_file, name_in_file) == name_in_file
    ):
        source = _source(kind, file, (*where, name_in_file))
        if name_in_file == "roles":
            yield from _read_roles(kind, file, (*where, name_in_file), table[name_in_file], place)
        elif name_in_file == "per_thread_auto_mail":
            yield from _read_switches(kind, file, (*where, name_in_file), table[name_in_file], place)
        elif name_in_file in NAMES:
            key = KEYS[NAMES[name_in_file]]
            value = _taken(key, (name_in_file,), table[name_in_file], source, place)
            yield FoundValue((key.name,), value, source)
        else:
            _unknown(source, (name_in_file,), [*NAMES, *TABLE_KEYS])


def _read_roles(
    kind: SourceKind, file: ConfigFile, where: Keys, table: Any, place: PathBase
) -> Iterator[FoundValue]:
    if not isinstance(table, dict):
        _refuse(_source(kind, file, where), ("roles",), "a table with one table for each role", table)
    for name, role in table.items():
        source, keys = _source(kind, file, (*where, name)), ("roles", name)
        if not IDENTITY.fullmatch(name):
            _refuse(
                source, keys, f"named by {KEYS['identity'].kind.expected.removeprefix('a name of ')}", role
            )
        if not isinstance(role, dict):
            _refuse(source, keys, "a table", role)
        for name_in_file, value in role.items():
            source = _source(kind, file, (*where, name, name_in_file))
            if name_in_file not in ROLE_KEYS:
                _unknown(source, (*keys, name_in_file), ROLE_KEYS)
            taken = _taken(KEYS[name_in_file], (*keys, name_in_file), value, source, place)
            yield FoundValue((*keys, name_in_file), taken, source)


def _read_switches(
    kind: SourceKind, file: ConfigFile, where: Keys, table: Any, place: PathBase
) -> Iterator[FoundValue]:
    if not isinstance(table, dict):
        _refuse(_source(kind, file, where), where[-1:], "a table of agent ids, each true or false", table)
    for name, value in table.items():
        source, keys = _source(kind, file, (*where, name)), (where[-1], name)
        yield FoundValue(keys, _taken(KEYS["auto_mail"], keys, value, source, place), source)


def _taken(key: Key[Any], keys: Keys, value: object, source: Source, place: PathBase) -> Any:
    try:
        return key.kind.take(value, place)
    except ValueError:
        _refuse(source, keys, key.kind.expected, value)


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
