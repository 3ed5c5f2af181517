"""From flags, environment and files to one value for each key, each with its source.

    flag → environment → the file that LANEWAY_CONFIG names → the repository's `.laneway.toml` → its
    `.atm.toml` → the user's `laneway/config.toml` → their `atm/config.toml` → default

Merges key by key, also inside tables. Strict inside our own tables and variables: what is
wrong there is a `SettingError`. What is shared with ATM is read if it can be and otherwise
set aside, as is what a repository may not say (see `vetting`): see `ignored`. `load` reads
these files and those that a trusted repository names, each once, and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from laneway.base import config_files
from laneway.base.config_files import ConfigFile, RepoPlace
from laneway.base.errors import SettingError
from laneway.base.kinds import IDENTITY, Place, shown
from laneway.base.layers import Found, Layer
from laneway.base.schema import (
    KEYS,
    TABLE_KEYS,
    Ignored,
    Key,
    Keys,
    Role,
    Settings,
    Source,
    SourceKind,
    Value,
    display,
    is_secret,
    spell,
)

if TYPE_CHECKING:
    from laneway.base.vetting import Vetted

__all__ = ["Ignored", "Role", "Settings", "Source", "Value", "load"]

OUR_TABLES: tuple[Keys, ...] = (("plugins", "codex-mcp"), ("plugins", "atm-agent-mcp"), ("laneway",))
"""One schema under three names; the later goes first."""
SHARED_TABLES: tuple[Keys, ...] = (("core",), ("atm",))
SHARED_NAMES = {"default_team": "team", "identity": "identity"}
SHARED_VARIABLES = ("ATM_TEAM", "ATM_IDENTITY")
NOBODY = "human"
"""ATM's identity for somebody who has not said who they are."""
ROLE_KEYS: tuple[str, ...] = Role.__struct_fields__
NAMES = {also: name for name, key in KEYS.items() for also in (*key.also, name)}
MAX_SHOWN_CHARS = 60
"""Of a wrong value, in the sentence that tells of it."""


def load(flags: Mapping[str, object], environment: Mapping[str, str], cwd: Path, home: Path) -> Settings:
    """The settings that hold in a folder. Flags that are None were not given."""
    place = config_files.find_repo_files(cwd)
    paths = {
        "global": config_files.global_path(environment, home),
        "laneway_global": config_files.own_path(environment, home),
    }
    values: dict[Keys, Value] = {(name,): Value(key.default, Source("default")) for name, key in KEYS.items()}
    layers = [_read_file("global", path, home) for path in paths.values()]
    for layer in layers:
        _merge(values, layer)
    vetted = list(_read_repo(place, values, environment, home))
    upper = [each.layer for each in vetted]
    for path in place.files:
        paths["laneway_repo" if path.name == config_files.OWN_REPO_FILE else "repo"] = path
    named = _named_file(environment, home)
    if named is not None:
        paths["named"] = named
        upper.append(_read_file("named", named, home))
    upper += [_read_environment(environment, home), _read_flags(flags, home)]
    for layer in upper:
        _merge(values, layer)
    return Settings(
        values,
        tuple(each for layer in (*layers, *upper) for each in layer.ignored),
        place,
        paths,
        tuple(each.file for each in vetted),
        {path: content for each in vetted for path, content in each.contents.items()},
    )


def _merge(values: dict[Keys, Value], layer: Layer) -> None:
    values.update({found.keys: Value(found.value, found.source) for found in layer.found})


def _read_repo(
    place: RepoPlace, own: Mapping[Keys, Value], environment: Mapping[str, str], home: Path
) -> Iterator[Vetted]:
    """What the repository's files may say, the lowest first; `own` is what holds without them."""
    if not place.files:
        return
    from laneway.base.trust import trust_file  # most folders have no such file
    from laneway.base.vetting import vet

    for path in place.files:
        layer = _read_file("repo", path, home)
        yield vet(layer, path, place.root_of(path), own, environment, trust_file(environment, home))


def _named_file(environment: Mapping[str, str], home: Path) -> Path | None:
    for variable in ("LANEWAY_CONFIG", "ATM_CONFIG"):
        said = environment.get(variable, "").strip()
        if said:
            path = home / said[2:] if said.startswith("~/") else Path(said)
            if not os.path.exists(path):  # Path.exists() may raise
                raise SettingError(
                    variable, f"there is no file {shown(said)}: correct it.", expected="a file"
                )
            return path
    return None


def _read_flags(flags: Mapping[str, object], home: Path) -> Layer:
    layer = Layer([], [])
    for name, value in flags.items():
        if value is not None:
            source = Source("flag", "--" + name.replace("_", "-"))
            layer.found.append(
                Found((name,), _taken(KEYS[name], (name,), value, source, Place(home)), source)
            )
    return layer


def _read_environment(environment: Mapping[str, str], home: Path) -> Layer:
    layer = Layer([], [])
    for name, key in KEYS.items():
        for variable in reversed(key.variables):
            said = environment.get(variable, "").strip()  # an empty one is an unset one
            if said:
                source, keys = Source("environment", variable), (name,)
                if variable in SHARED_VARIABLES:
                    _take_shared(layer, name, said, source)
                else:
                    value = _taken(key, keys, key.kind.spell(said), source, Place(home))
                    layer.found.append(Found(keys, value, source))
    return layer


def _read_file(kind: SourceKind, path: Path, home: Path) -> Layer:
    layer = Layer([], [])
    file = config_files.read(path)
    if file is None:
        return layer
    for where in SHARED_TABLES:
        table = _dig(file.data, where)
        for said, name in SHARED_NAMES.items():
            if isinstance(table, dict) and said in table:
                _take_shared(layer, name, table[said], _source(kind, file, (*where, said)))
    for where in OUR_TABLES:
        table = _dig(file.data, where)
        if table is not None:
            layer.found.extend(_read_table(kind, file, where, table, Place(home, path.parent)))
    return layer


def _take_shared(layer: Layer, name: str, value: object, source: Source) -> None:
    """Leniently: a value that ATM may like and we cannot use is set aside."""
    if name == "identity" and value == NOBODY:
        return
    try:
        layer.found.append(Found((name,), KEYS[name].kind.take(value, Place(Path())), source))
    except ValueError:
        layer.ignored.append(Ignored((name,), value, source, f"it must be {KEYS[name].kind.expected}"))


def _dig(data: Any, where: Keys) -> Any:
    for part in where:
        data = data.get(part) if isinstance(data, dict) else None
    return data


def _source(kind: SourceKind, file: ConfigFile, keys: Keys) -> Source:
    return Source(kind, str(file.path), file.lines.find(keys))


def _read_table(kind: SourceKind, file: ConfigFile, where: Keys, table: Any, place: Place) -> Iterator[Found]:
    if not isinstance(table, dict):
        _refuse(_source(kind, file, where), where, "a table", table)
    # Other names first, so that a key's own name holds where both are given.
    for said in sorted(table, key=lambda said: NAMES.get(said, said) == said):
        source = _source(kind, file, (*where, said))
        if said == "roles":
            yield from _read_roles(kind, file, (*where, said), table[said], place)
        elif said == "per_thread_auto_mail":
            yield from _read_switches(kind, file, (*where, said), table[said], place)
        elif said in NAMES:
            key = KEYS[NAMES[said]]
            value = _taken(key, (said,), table[said], source, place)
            yield Found((key.name,), value, source)
        else:
            _unknown(source, (said,), [*NAMES, *TABLE_KEYS])


def _read_roles(kind: SourceKind, file: ConfigFile, where: Keys, table: Any, place: Place) -> Iterator[Found]:
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
        for said, value in role.items():
            source = _source(kind, file, (*where, name, said))
            if said not in ROLE_KEYS:
                _unknown(source, (*keys, said), ROLE_KEYS)
            taken = _taken(KEYS[said], (*keys, said), value, source, place)
            yield Found((*keys, said), taken, source)


def _read_switches(
    kind: SourceKind, file: ConfigFile, where: Keys, table: Any, place: Place
) -> Iterator[Found]:
    if not isinstance(table, dict):
        _refuse(_source(kind, file, where), where[-1:], "a table of agent ids, each true or false", table)
    for name, value in table.items():
        source, keys = _source(kind, file, (*where, name)), (where[-1], name)
        yield Found(keys, _taken(KEYS["auto_mail"], keys, value, source, place), source)


def _taken(key: Key[Any], keys: Keys, value: object, source: Source, place: Place) -> Any:
    try:
        return key.kind.take(value, place)
    except ValueError:
        _refuse(source, keys, key.kind.expected, value)


def _refuse(source: Source, keys: Keys, expected: str, value: object) -> NoReturn:
    told = display(keys, value) if is_secret(keys) or not isinstance(value, str) else repr(value)
    told = told if len(told) <= MAX_SHOWN_CHARS else told[:MAX_SHOWN_CHARS] + " …"
    raise SettingError(
        shown(source.name),
        f"{spell(keys)} must be {expected}, not {told}.",
        line=source.line,
        key=spell(keys),
        expected=expected,
    )


def _unknown(source: Source, keys: Keys, known: Any) -> NoReturn:
    import difflib

    near = difflib.get_close_matches(keys[-1], known, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}."
    raise SettingError(
        shown(source.name),
        f"there is no setting {spell(keys)}; {remedy}",
        line=source.line,
        key=spell(keys),
        expected=near[0] if near else "a known key",
    )
