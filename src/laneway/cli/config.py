"""`laneway config`: what holds here, where it comes from, what was ignored; and whom to trust."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from laneway.base import trust
from laneway.base.config_files import find_repo_file
from laneway.base.errors import UsageError
from laneway.base.kinds import plain, shown
from laneway.base.redact import HIDDEN
from laneway.base.schema import Ignored, Keys, Source, display, is_secret, spell
from laneway.base.settings import Settings, load
from laneway.cli.terminal import Style

EPILOG = """\
A value comes from a flag, else from the environment, else from the .atm.toml of the
repository, else from ~/.config/atm/config.toml, else it is the default. A repository's
.atm.toml can choose no program, no file and no wider access until you trust it:

  laneway config                   what holds here, and where it comes from
  laneway config trust             let this repository's .atm.toml set everything
  laneway config untrust ../other  take that back
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show every setting with its source, or trust a repository."
    parser.epilog = EPILOG
    parser.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=("show", "trust", "untrust"),
        help="show (default), trust, untrust",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="default: here")
    parser.add_argument("--team", metavar="NAME", help="as if this team were named")
    parser.add_argument("--identity", metavar="NAME", help="as if this identity were named")
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    folder: Path = options.folder.expanduser()
    if options.action == "untrust":  # also for a folder that is gone
        return _untrust(options, find_repo_file(folder).root or folder)
    if not folder.is_dir():
        raise UsageError(f"There is no folder {shown(folder)}.")
    flags = {"team": options.team, "identity": options.identity}
    settings = load(flags, os.environ, folder, Path.home())
    if options.action == "trust":
        # Only now: nobody should trust a file that has a mistake in it.
        return _trust(options, settings, folder)
    if options.json:
        print(json.dumps(_data(settings), indent=2))
    else:
        _show(settings)
    return 0


def _trust(options: argparse.Namespace, before: Settings, folder: Path) -> int:
    root = before.repo.root
    if root is None:
        raise UsageError(
            f"{shown(folder.absolute())} is in no repository and has no .atm.toml: there is nothing to trust."
        )
    has_changed = trust.change(_trust_file(), root, trusted=True)
    _tell(options, root, "trusted", has_changed)
    after = load({}, os.environ, folder, Path.home())
    for each in before.ignored if not options.json else ():
        if each not in after.ignored:
            print(f"  from now on: {spell(each.keys)} = {display(each.keys, each.value)} ({each.source})")
    return 0


def _untrust(options: argparse.Namespace, root: Path) -> int:
    _tell(options, root, "not trusted", trust.change(_trust_file(), root, trusted=False))
    return 0


def _tell(options: argparse.Namespace, root: Path, now: str, has_changed: bool) -> None:
    real = os.path.realpath(root)
    if options.json:
        print(json.dumps({"root": real, "trusted": now == "trusted", "changed": has_changed}))
    else:
        print(f"{shown(real)} {'is now' if has_changed else 'was already'} {now}.")


def _trust_file() -> Path:
    return trust.trust_file(os.environ, Path.home())


def _show(settings: Settings) -> None:
    style = Style(sys.stdout)
    rows = [
        (spell(keys), display(keys, found.value), found.source) for keys, found in settings.values.items()
    ]
    wide = max(len(name) for name, _, _ in rows)
    middle = min(max(len(value) for _, value, _ in rows), 40)
    for name, value, source in rows:
        line = f"{name:<{wide}}  {value:<{middle}}  {source}"
        print(style.dim(line) if source.kind == "default" else line)
    for each in settings.ignored:
        print(style.yellow(f"ignored  {each}"))
    print()
    for kind, path in settings.files.items():
        print(f"{kind} file: {shown(path)}{'' if path.exists() else ' (not there)'}")
    if settings.repo.root is not None:
        print(f"repository: {shown(settings.repo.root)} ({_standing(settings)})")


def _standing(settings: Settings) -> str:
    given = trust.read(_trust_file())
    if settings.repo.root is not None and given.covers(settings.repo.root):
        return "trusted"
    return f"not trusted: {given.problem}" if given.problem else "not trusted"


def _data(settings: Settings) -> dict[str, Any]:
    root = settings.repo.root
    return {
        "settings": {
            spell(keys): {"value": _public(keys, found.value), "source": _source(found.source)}
            for keys, found in settings.values.items()
        },
        "ignored": [_ignored(each) for each in settings.ignored],
        "files": {
            kind: {"path": str(path), "exists": path.exists()} for kind, path in settings.files.items()
        },
        "repository": None
        if root is None
        else {"root": str(root), "trusted": _standing(settings) == "trusted"},
    }


def _ignored(each: Ignored) -> dict[str, Any]:
    return {
        "key": spell(each.keys),
        "value": _public(each.keys, each.value),
        "source": _source(each.source),
        "why": each.why,
    }


def _public(keys: Keys, value: object) -> Any:
    if is_secret(keys) and value is not None:
        return HIDDEN
    # What ATM's tables hold may be anything that TOML knows, dates included.
    return plain(value) if isinstance(value, (str, int, tuple, Path, type(None))) else shown(value)


def _source(source: Source) -> dict[str, Any]:
    return {"kind": source.kind, "name": source.name, "line": source.line}
