"""Finds the program of an engine: flag, environment, setting, PATH, then a PyPI package.

Also composes its environment: the user's, without our secrets. Imports next to nothing, so that the
program can be found and started before the rest of Laneway is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from laneway.base.errors import BinaryError

OUR_SECRETS = ("_TOKEN", "_SECRET", "_API_KEY", "_PASSWORD")
"""Endings of our own `LANEWAY_…` variables that are not passed on."""


class Binary(NamedTuple):
    path: str
    source: str


class Program(NamedTuple):
    """How one program is named to us and found."""

    title: str
    """For sentences: `Codex`."""
    command: str
    """Its name on PATH."""
    flag: str
    variable: str
    older_variable: str
    """Asked after that; empty if there is none."""
    setting: str
    extra: str
    """The extra of Laneway that brings it."""
    bundled: Callable[[], str | None]
    """Finds the executable inside that extra's package, if it is installed."""


def find_program(
    program: Program, flag: str | None, configured: str | None, environment: Mapping[str, str]
) -> Binary:
    """The executable to use. Raises `BinaryError`, whose text says what to do."""
    for named, source in (
        (flag, program.flag),
        (environment.get(program.variable), program.variable),
        (environment.get(program.older_variable), program.older_variable),
        (configured, program.setting),
    ):
        if named:
            return Binary(_checked(program, named, source, environment), source)
    on_path = _which(program.command, environment)
    if on_path:
        return Binary(on_path, "PATH")
    bundled = program.bundled()
    if bundled:
        return Binary(bundled, f"laneway[{program.extra}]")
    from laneway.base.installed import installed_how

    raise BinaryError(
        f"No {program.title} was found: install one with `{installed_how().adding(program.extra)}`,"
        f" put `{program.command}` on PATH, or name it with {program.flag}."
    )


def _which(name: str, environment: Mapping[str, str]) -> str | None:
    """Search PATH like a shell (importing `shutil.which` costs three milliseconds of start-up)."""
    for folder in environment.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _checked(program: Program, named: str, source: str, environment: Mapping[str, str]) -> str:
    path = named if os.sep in named else _which(named, environment) or named
    expanded = os.path.expanduser(path)
    if not os.path.isfile(expanded):
        raise BinaryError(
            f"There is no {program.title} at {named} (named by {source}): correct the path or leave it out."
        )
    if not os.access(expanded, os.X_OK):
        raise BinaryError(f"{named} (named by {source}) is not executable: run `chmod +x {named}`.")
    return expanded


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without our own secrets."""
    return {
        key: value
        for key, value in environment.items()
        if not (key.startswith("LANEWAY_") and key.endswith(OUR_SECRETS))
    }
