"""`laneway config`: shows the settings with their sources, changes them, and trusts repositories."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from laneway.base.config_files import find_repo_files
from laneway.base.errors import UsageError
from laneway.base.kinds import to_text
from laneway.base.setting_values import display, spell
from laneway.base.settings import Settings, load
from laneway.cli import config_trust
from laneway.cli.config_values import settings_json
from laneway.terminal import Style

EPILOG = """\
A value comes from a flag, else the environment, else the repository's .laneway.toml or
.atm.toml, else ~/.config/laneway/config.toml or ~/.config/atm/config.toml, else the default.
Unless you trust a repository, its settings may only narrow what you allow.

  laneway config                   show what is set here, and where it comes from
  laneway config --all             include the defaults
  laneway config set model gpt-5   write your own file; with --repo the repository's
  laneway config trust             see what this repository asks for, and allow exactly that
  laneway config untrust ../other  withdraw that trust
"""
MAX_VALUE_COLUMNS = 40
"""Of the column of values; longer values stick out of it."""

Add = Callable[[argparse.ArgumentParser], None]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show the settings with their sources, change them, or trust a repository."
    parser.epilog = EPILOG
    _add_show(parser)
    parser.set_defaults(run=show, folder=Path())
    below = parser.add_subparsers(title="actions", metavar="ACTION")
    actions: dict[str, tuple[Add, str]] = {
        "show": (_add_show_in, "show what is set in a folder (the default action, for the current folder)"),
        "get": (_add_get, "print the value of one setting"),
        "set": (_add_set, "write one setting"),
        "unset": (_add_unset, "remove one setting"),
        "trust": (_add_trust, "trust a repository's settings as they are now"),
        "untrust": (_add_untrust, "withdraw that trust"),
    }
    for name, (add, summary) in actions.items():
        sentence = f"{summary[0].upper()}{summary[1:]}."
        add(below.add_parser(name, help=summary, description=sentence, argument_default=argparse.SUPPRESS))


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="include the defaults")
    parser.add_argument("--team", metavar="NAME", help="as if --team NAME were given")
    parser.add_argument("--identity", metavar="NAME", help="as if --identity NAME were given")
    _add_json(parser)


def _add_show_in(parser: argparse.ArgumentParser) -> None:
    _add_show(parser)
    _add_folder(parser)
    parser.set_defaults(run=show)


def _add_get(parser: argparse.ArgumentParser) -> None:
    _add_key(parser)
    _add_json(parser)
    parser.set_defaults(run=_get)


def _add_set(parser: argparse.ArgumentParser) -> None:
    _add_key(parser)
    parser.add_argument(
        "value",
        metavar="VALUE",
        help="separate list items with commas; - reads the value from standard input",
    )
    _add_repo(parser)
    parser.set_defaults(run=_set)


def _add_unset(parser: argparse.ArgumentParser) -> None:
    _add_key(parser)
    _add_repo(parser)
    parser.set_defaults(run=_unset)


def _add_trust(parser: argparse.ArgumentParser) -> None:
    _add_folder(parser)
    _add_json(parser)
    parser.add_argument("--yes", action="store_true", default=False, help="do not ask, for scripts")
    parser.set_defaults(run=_trust)


def _add_untrust(parser: argparse.ArgumentParser) -> None:
    _add_folder(parser)
    _add_json(parser)
    parser.set_defaults(run=_untrust)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="default: the current folder"
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")


def _add_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="for example model, or roles.reviewer.sandbox")
    parser.add_argument(
        "-C",
        "--cwd",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the folder whose settings to use (default: the current one)",
    )


def _add_repo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repo",
        action="store_true",
        default=False,
        help="in the repository's .laneway.toml instead of your own file",
    )


# ── the actions ────────────────────────────────────────────────────────────


def show(options: argparse.Namespace) -> int:
    settings = load({"team": options.team, "identity": options.identity}, *_load_arguments(options))
    if options.json:
        print(json.dumps(settings_json(settings), indent=2))
    else:
        _print(settings, has_defaults=options.all)
    return 0


def _trust(options: argparse.Namespace) -> int:
    # Loaded first: a file with a mistake in it must not be trusted.
    environment, folder, home = _load_arguments(options)
    return config_trust.give(options, load({}, environment, folder, home), folder)


def _untrust(options: argparse.Namespace) -> int:
    folder: Path = options.folder.expanduser()  # it need not exist any more
    return config_trust.take_back(options, find_repo_files(folder).root or folder)


def _get(options: argparse.Namespace) -> int:
    from laneway.cli import config_edit  # imports the file editor, which other actions do not need

    return config_edit.get(options)


def _set(options: argparse.Namespace) -> int:
    from laneway.cli import config_edit

    return config_edit.set_value(options)


def _unset(options: argparse.Namespace) -> int:
    from laneway.cli import config_edit

    return config_edit.unset(options)


def _load_arguments(options: argparse.Namespace) -> tuple[os._Environ[str], Path, Path]:
    folder: Path = options.folder.expanduser()
    if not folder.is_dir():
        raise UsageError(f"There is no folder {to_text(folder)}.")
    return os.environ, folder, Path.home()


# ── for people ─────────────────────────────────────────────────────────────


def _print(settings: Settings, *, has_defaults: bool) -> None:
    style = Style(sys.stdout)
    rows = [
        (spell(keys), display(keys, setting.value), setting.source)
        for keys, setting in settings.values.items()
        if has_defaults or setting.source.kind != "default"
    ]
    if not rows:
        print("Nothing is set: `laneway config --all` shows the defaults.")
    name_columns = max((len(name) for name, _, _ in rows), default=0)
    value_columns = min(max((len(value) for _, value, _ in rows), default=0), MAX_VALUE_COLUMNS)
    for name, value, source in rows:
        line = f"{name:<{name_columns}}  {value:<{value_columns}}  {source}"
        print(style.dim(line) if source.kind == "default" else line)
    for ignored in settings.ignored:
        print(style.yellow(f"ignored  {ignored}"))
    for file in settings.repo_files:
        if file.trust_state == "changed":
            print(f"changed since you trusted it: {to_text(file.path)}")
            print("\n".join(config_trust.difference(file)))
    print()
    for label, path in settings.files.items():
        print(
            f"{label.replace('_', ' ')} file: {to_text(path)}{'' if path.exists() else ' (does not exist)'}"
        )
    if settings.repo.root is not None:
        print(f"repository: {to_text(settings.repo.root)} ({_trust_text(settings)})")


def _trust_text(settings: Settings) -> str:
    states = {file.trust_state for file in settings.repo_files}
    for worst in ("not trusted", "changed"):
        if worst in states:
            return "no longer trusted: it has changed" if worst == "changed" else worst
    return "trusted, as it is" if "trusted" in states else "asks for nothing that needs trust"
