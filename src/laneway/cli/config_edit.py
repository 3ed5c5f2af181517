"""`laneway config get|set|unset`: reads, writes or removes one setting; the rest of the file stays.

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
from laneway.base.kinds import Kind, PathBase, to_text
from laneway.base.named_tables import TABLE_KEYS, TABLES, kind_at, names_in, table_at
from laneway.base.plain import plain
from laneway.base.repo_rules import rule_of
from laneway.base.schema import KEY_AT, KEYS, Settings
from laneway.base.setting_values import Keys, display, is_secret, spell
from laneway.base.settings import OUR_TABLES, load
from laneway.base.toml_lines import dotted
from laneway.cli.clients import edit, files
from laneway.cli.command_settings import settings_in
from laneway.cli.config_values import public, source_json
from laneway.cli.registrations import parse, problem_text

OUR_TABLE = OUR_TABLES[-1]


class NamedSetting(NamedTuple):
    """A setting that was named on the command line."""

    keys: Keys
    """Under its current name, if the command line used an older one."""
    kind: Kind[Any] | None
    """What its value must be; None for a whole table."""


def get(options: argparse.Namespace) -> int:
    """Print the value that holds; exit code 1 if none is set."""
    setting = _parse_key(options.key)
    settings = settings_in({}, options.cwd)
    current = settings.values.get(setting.keys)
    if options.json:
        data = {
            "key": spell(setting.keys),
            "value": None if current is None else public(setting.keys, current.value),
            "source": None if current is None else source_json(current.source),
        }
        print(json.dumps(data))
    elif current is not None and current.value is not None:
        print(display(setting.keys, current.value))
    else:
        print(f"laneway: {spell(setting.keys)} is not set.", file=sys.stderr)
    return 0 if current is not None and current.value is not None else 1


def set_value(options: argparse.Namespace) -> int:
    setting = _parse_key(options.key)
    if options.repo and rule_of(setting.keys).is_never:
        raise UsageError(f"Only your own settings can set {spell(setting.keys)}: leave out --repo.")
    target = _target(options)
    typed = sys.stdin.readline().rstrip("\n") if options.value == "-" else options.value
    value = _value(setting, typed, target, is_repo=options.repo)
    snapshot = files.read(target, files.SHARED if options.repo else files.PRIVATE)
    keys = (*OUR_TABLE, *setting.keys)
    try:
        inside = edit.look(parse(snapshot.text, target), keys[:-1])
        at, what = (keys, value) if inside is not None else (keys[:-1], {keys[-1]: value})
        text = edit.put(snapshot.text, target, at, what)
    except ValueError as problem:
        raise files.refused(target, problem_text(problem)) from problem
    if text != snapshot.text:
        files.write(snapshot, text)
    _report(options, setting, target, f"{spell(setting.keys)} = {display(setting.keys, value)}")
    if is_secret(setting.keys) and snapshot.mode & 0o077:
        print(
            f"laneway: other users can read {to_text(target)}, including the secret. Run `chmod 600` on it.",
            file=sys.stderr,
        )
    return 0


def unset(options: argparse.Namespace) -> int:
    setting = _parse_key(options.key, may_be_table=True)
    target = _target(options)
    snapshot = files.read(target, files.PRIVATE)
    text = snapshot.text
    places = [place for place, key in KEY_AT.items() if key.keys == setting.keys] or [setting.keys]
    try:
        for table in OUR_TABLES:
            for place in places:
                keys = (*table, *place)
                if edit.look(parse(text, target), keys) is not None:
                    text = edit.drop(text, target, keys)
    except ValueError as problem:
        raise files.refused(target, problem_text(problem)) from problem
    if text == snapshot.text:
        raise UsageError(f"{to_text(target)} does not set {spell(setting.keys)}: nothing was changed.")
    files.write(snapshot, text)
    _report(options, setting, target, f"{spell(setting.keys)} is no longer set")
    return 0


# ── the setting and its value ──────────────────────────────────────────────


def _parse_key(key: str, *, may_be_table: bool = False) -> NamedSetting:
    """Parse `model`, `roles.reviewer.sandbox`, `per_thread_auto_mail."codex:1"`; else a `UsageError`."""
    parts, end = dotted(key, 0)
    if not parts or end != len(key):
        raise UsageError(f"{plain(key)} is not the name of a setting.")
    kind = kind_at(parts)
    if kind is not None:
        return NamedSetting(KEY_AT[parts].keys if parts in KEY_AT else parts, kind)
    table = table_at(parts)
    is_entry = table is not None and len(parts) <= len(table.place) + 1
    if may_be_table and (is_entry or parts in TABLES):
        return NamedSetting(parts, None)
    raise UsageError(f"{_problem(parts)}; {_remedy(parts)}")


def _problem(parts: Keys) -> str:
    name = plain(spell(parts))
    return f"{name} is a table of settings" if parts in TABLES else f"There is no setting {name}"


def _remedy(parts: Keys) -> str:
    import difflib

    if (table := table_at(parts)) is not None:
        return f"use {table.usage}."
    if parts in TABLES:
        return f"use one of {', '.join(spell((*parts, name)) for name in names_in(parts))}."
    # Within the table that is named, else among all.
    inside = max((parts[:length] for length in range(len(parts)) if parts[:length] in TABLES), default=())
    near = difflib.get_close_matches(parts[len(inside)], names_in(inside), n=1)
    if near:
        return f"did you mean {spell((*inside, *near))}?"
    near = difflib.get_close_matches(spell(parts), [*KEYS, *TABLE_KEYS], n=1)
    return f"did you mean {near[0]}?" if near else "`laneway config --all` lists them."


def _value(setting: NamedSetting, typed: str, target: Path, *, is_repo: bool) -> Any:
    """The value as the file will hold it; a `UsageError` if the schema does not allow it."""
    kind = setting.kind
    assert kind is not None, "only a table has none"
    if kind.label in ("path", "program"):
        typed = _path(typed, target.parent, is_program=kind.label == "program", is_repo=is_repo)
    try:
        taken = kind.take(kind.spell(typed), PathBase(Path.home(), target.parent))
    except ValueError:
        actual = "" if is_secret(setting.keys) else f", not {plain(repr(typed))}"
        raise UsageError(f"{spell(setting.keys)} must be {kind.expected}{actual}.") from None
    if kind.label in ("path", "program"):
        return typed
    return list(taken) if isinstance(taken, tuple) else taken


def _path(typed: str, folder: Path, *, is_program: bool, is_repo: bool) -> str:
    """Users type paths relative to their folder; in the file they are relative to the file."""
    if not typed or typed.startswith(("/", "~/")) or (is_program and os.sep not in typed):
        return typed
    absolute = os.path.abspath(typed)
    if not is_repo:
        return absolute
    relative = os.path.relpath(absolute, folder)
    return relative if os.sep in relative or not is_program else os.path.join(os.curdir, relative)


# ── the file, and the report ───────────────────────────────────────────────


def _target(options: argparse.Namespace) -> Path:
    if not options.repo:
        return config_files.own_path(os.environ, Path.home())
    repo = config_files.find_repo_files(options.cwd)
    own = [path for path in repo.files if path.name == config_files.OWN_REPO_FILE]
    if not own and (repo.root is None or not repo.has_git):
        raise UsageError(f"{to_text(options.cwd.absolute())} is not in a repository: leave out --repo.")
    target = own[0] if own else Path(repo.root or "", config_files.OWN_REPO_FILE)
    if Path(os.path.realpath(target)).parent != target.parent:
        # A link in a foreign repository could lead to any file of the user's.
        raise UsageError(f"{to_text(target)} is a link that leads elsewhere: nothing was written.")
    return target


def _report(options: argparse.Namespace, setting: NamedSetting, target: Path, what: str) -> None:
    print(f"{plain(what)} ({to_text(target)})")
    try:
        settings = load({}, os.environ, options.cwd, Path.home())
    except SettingError as problem:
        print(f"laneway: {plain(str(problem))}", file=sys.stderr)
        return
    for line in _warnings(settings, setting.keys, target):
        print(line, file=sys.stderr)


def _warnings(settings: Settings, keys: Keys, target: Path) -> list[str]:
    """Reasons why the written value may not be the one that holds here."""
    ignored = [each for each in settings.ignored if each.keys == keys and each.source.name == str(target)]
    if ignored:
        return [f"laneway: {each}" for each in ignored]
    current = settings.values.get(keys)
    if current is None or current.source.kind == "default" or current.source.name == str(target):
        return []
    value = display(keys, current.value)
    return [f"laneway: {spell(keys)} = {value} still applies here, from {current.source}."]
