"""`laneway config get|set|unset`: one setting, read or written; comments and all else in the file stay.

Writes the user's own file, or with `--repo` the repository's `.laneway.toml`; never a file of ATM's.
A key must exist and a value must fit before anything is written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from laneway.base import config_files
from laneway.base.errors import SettingError, UsageError
from laneway.base.kinds import IDENTITY, Kind, Place, shown
from laneway.base.plain import plain
from laneway.base.schema import KEYS, TABLE_KEYS, Keys, Settings, display, is_secret, spell
from laneway.base.settings import NAMES, OUR_TABLES, ROLE_KEYS, load
from laneway.base.toml_lines import dotted
from laneway.cli.chosen import settings_here
from laneway.cli.clients import edit, files
from laneway.cli.config_values import public, source_json
from laneway.cli.registrations import in_words, parse

OUR_TABLE = OUR_TABLES[-1]


class Named(NamedTuple):
    """A setting that was named on the command line."""

    keys: Keys
    """By its own name."""
    kind: Kind[Any] | None
    """What its value must be; none for a whole table."""


def get(options: argparse.Namespace) -> int:
    """The value that holds; exit code 1 if none is set."""
    named = _named(options.key)
    settings = settings_here({}, options.cwd)
    found = settings.values.get(named.keys)
    if options.json:
        data = {
            "key": spell(named.keys),
            "value": None if found is None else public(named.keys, found.value),
            "source": None if found is None else source_json(found.source),
        }
        print(json.dumps(data))
    elif found is not None and found.value is not None:
        print(display(named.keys, found.value))
    else:
        print(f"laneway: {spell(named.keys)} is not set.", file=sys.stderr)
    return 0 if found is not None and found.value is not None else 1


def set_value(options: argparse.Namespace) -> int:
    named = _named(options.key)
    target = _target(options)
    said = sys.stdin.readline().rstrip("\n") if options.value == "-" else options.value
    value = _value(named, said, target, is_repo=options.repo)
    snapshot = files.read(target, files.SHARED if options.repo else files.PRIVATE)
    keys = (*OUR_TABLE, *named.keys)
    try:
        inside = edit.look(parse(snapshot.text, target), keys[:-1])
        at, what = (keys, value) if inside is not None else (keys[:-1], {keys[-1]: value})
        text = edit.put(snapshot.text, target, at, what)
    except ValueError as problem:
        raise files.refused(target, in_words(problem)) from problem
    if text != snapshot.text:
        files.write(snapshot, text)
    _report(options, named, target, f"{spell(named.keys)} = {display(named.keys, value)}")
    if is_secret(named.keys) and snapshot.mode & 0o077:
        print(
            f"laneway: other users can read {shown(target)}, including the secret: run `chmod 600` on it.",
            file=sys.stderr,
        )
    return 0


def unset(options: argparse.Namespace) -> int:
    named = _named(options.key, may_be_table=True)
    target = _target(options)
    snapshot = files.read(target, files.PRIVATE)
    text = snapshot.text
    names = [also for also, name in NAMES.items() if name == named.keys[0]] or [named.keys[0]]
    try:
        for table in OUR_TABLES:
            for name in names:
                keys = (*table, name, *named.keys[1:])
                if edit.look(parse(text, target), keys) is not None:
                    text = edit.drop(text, target, keys)
    except ValueError as problem:
        raise files.refused(target, in_words(problem)) from problem
    if text == snapshot.text:
        raise UsageError(f"{shown(target)} does not set {spell(named.keys)}: nothing was changed.")
    files.write(snapshot, text)
    _report(options, named, target, f"{spell(named.keys)} is no longer set")
    return 0


# ── what was named ─────────────────────────────────────────────────────────


def _named(said: str, *, may_be_table: bool = False) -> Named:
    """`model`, `roles.reviewer.sandbox`, `per_thread_auto_mail."codex:1"`; a `UsageError` for all else."""
    parts, end = dotted(said, 0)
    if not parts or end != len(said):
        raise UsageError(f"{plain(said)} is not the name of a setting.")
    first = NAMES.get(parts[0], parts[0])
    if first in KEYS and len(parts) == 1:
        return Named((first,), KEYS[first].kind)
    if first == "per_thread_auto_mail" and len(parts) == 2:
        return Named(parts, KEYS["auto_mail"].kind)
    if first == "roles" and len(parts) == 3 and parts[2] in ROLE_KEYS and IDENTITY.fullmatch(parts[1]):
        return Named(parts, KEYS[parts[2]].kind)
    if first in TABLE_KEYS and may_be_table and len(parts) <= 2:
        return Named(parts, None)
    raise UsageError(_unknown(parts))


def _unknown(parts: Keys) -> str:
    import difflib

    if parts[0] in TABLE_KEYS:
        roles = f"roles.NAME.FIELD, where FIELD is one of {', '.join(ROLE_KEYS)}"
        example = roles if parts[0] == "roles" else 'per_thread_auto_mail."AGENT ID"'
        return f"There is no setting {plain(spell(parts))}; use {example}."
    near = difflib.get_close_matches(parts[0], [*NAMES, *TABLE_KEYS], n=1)
    remedy = f"did you mean {near[0]}?" if near else "`laneway config --all` lists them."
    return f"There is no setting {plain(spell(parts))}; {remedy}"


def _value(named: Named, said: str, target: Path, *, is_repo: bool) -> Any:
    """As the file will say it; a `UsageError` if the schema does not take it."""
    kind = named.kind
    assert kind is not None, "only a table has none"
    if kind.label in ("path", "program"):
        said = _path(said, target.parent, is_program=kind.label == "program", is_repo=is_repo)
    try:
        taken = kind.take(kind.spell(said), Place(Path.home(), target.parent))
    except ValueError:
        told = "" if is_secret(named.keys) else f", not {plain(repr(said))}"
        raise UsageError(f"{spell(named.keys)} must be {kind.expected}{told}.") from None
    if kind.label in ("path", "program"):
        return said
    return list(taken) if isinstance(taken, tuple) else taken


def _path(said: str, folder: Path, *, is_program: bool, is_repo: bool) -> str:
    """A relative path is meant from where its user is; the file reads it from where the file is."""
    if not said or said.startswith(("/", "~/")) or (is_program and os.sep not in said):
        return said
    absolute = os.path.abspath(said)
    if not is_repo:
        return absolute
    relative = os.path.relpath(absolute, folder)
    return relative if os.sep in relative or not is_program else os.path.join(os.curdir, relative)


# ── where it is written, and what came of it ───────────────────────────────


def _target(options: argparse.Namespace) -> Path:
    if not options.repo:
        return config_files.own_path(os.environ, Path.home())
    place = config_files.find_repo_files(options.cwd)
    own = [path for path in place.files if path.name == config_files.OWN_REPO_FILE]
    if not own and (place.root is None or not place.has_git):
        raise UsageError(f"{shown(options.cwd.absolute())} is not in a repository: leave out --repo.")
    target = own[0] if own else Path(place.root or "", config_files.OWN_REPO_FILE)
    if Path(os.path.realpath(target)).parent != target.parent:
        # A stranger's link could lead to any file of the user's.
        raise UsageError(f"{shown(target)} is a link that leads elsewhere: nothing was written.")
    return target


def _report(options: argparse.Namespace, named: Named, target: Path, what: str) -> None:
    print(f"{plain(what)} ({shown(target)})")
    try:
        settings = load({}, os.environ, options.cwd, Path.home())
    except SettingError as problem:
        print(f"laneway: {plain(str(problem))}", file=sys.stderr)
        return
    for line in _hindrances(settings, named.keys, target):
        print(line, file=sys.stderr)


def _hindrances(settings: Settings, keys: Keys, target: Path) -> list[str]:
    """Why what was written may not be what holds here."""
    ignored = [each for each in settings.ignored if each.keys == keys and each.source.name == str(target)]
    if ignored:
        return [f"laneway: {each}" for each in ignored]
    found = settings.values.get(keys)
    if found is None or found.source.kind == "default" or found.source.name == str(target):
        return []
    value = display(keys, found.value)
    return [f"laneway: {spell(keys)} = {value} still applies here, from {found.source}."]
