"""Finds the Codex binary: flag, environment, setting, PATH, then the PyPI package `laneway[codex]`.

Imports next to nothing, so that Codex can be found and started before the rest of Laneway is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from laneway.base.errors import BinaryError

ENVIRONMENT_KEY = "LANEWAY_CODEX_BIN"
OUR_SECRETS = ("_TOKEN", "_SECRET", "_API_KEY", "_PASSWORD")
"""Endings of our own `LANEWAY_…` variables that are not passed to Codex."""


class Binary(NamedTuple):
    path: str
    source: str


def find(
    flag: str | None = None, configured: str | None = None, environment: Mapping[str, str] | None = None
) -> Binary:
    """The Codex to use. Raises `BinaryError`, whose text says what to do."""
    environment = os.environ if environment is None else environment
    for named, source in (
        (flag, "--codex-bin"),
        (environment.get(ENVIRONMENT_KEY), ENVIRONMENT_KEY),
        (configured, "codex_bin"),
    ):
        if named:
            return Binary(_checked(named, source, environment), source)
    on_path = _which("codex", environment)
    if on_path:
        return Binary(on_path, "PATH")
    bundled = _bundled()
    if bundled:
        return Binary(bundled, "laneway[codex]")
    from laneway.base.installed import installed_how

    raise BinaryError(
        f"No Codex was found: install one with `{installed_how().adding('codex')}`, put `codex` on PATH,"
        " or name it with --codex-bin."
    )


def _which(name: str, environment: Mapping[str, str]) -> str | None:
    """Search PATH like a shell (importing `shutil.which` costs three milliseconds of start-up)."""
    for folder in environment.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _checked(named: str, source: str, environment: Mapping[str, str]) -> str:
    path = named if os.sep in named else _which(named, environment) or named
    expanded = os.path.expanduser(path)
    if not os.path.isfile(expanded):
        raise BinaryError(
            f"There is no Codex at {named} (named by {source}): correct the path or leave it out."
        )
    if not os.access(expanded, os.X_OK):
        raise BinaryError(f"{named} (named by {source}) is not executable: run `chmod +x {named}`.")
    return expanded


def _bundled() -> str | None:
    try:
        from codex_cli_bin import bundled_codex_path
    except ImportError:
        return None
    try:
        return str(bundled_codex_path())
    except FileNotFoundError:
        return None


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without our own secrets."""
    return {
        key: value
        for key, value in environment.items()
        if not (key.startswith("LANEWAY_") and key.endswith(OUR_SECRETS))
    }


def codex_home(environment: Mapping[str, str]) -> str:
    """The folder in which a Codex with this environment keeps its threads."""
    home = environment.get("HOME") or os.path.expanduser("~")
    return os.path.realpath(environment.get("CODEX_HOME") or os.path.join(home, ".codex"))
