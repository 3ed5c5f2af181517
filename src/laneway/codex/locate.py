"""Finds the Codex binary: flag, environment, setting, PATH, then the PyPI package `laneway[codex]`.

Imports next to nothing, so that Codex can be found and started before the rest of Laneway is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from laneway.base.programs import Binary, Program, child_environment, find_program

__all__ = ["ENVIRONMENT_KEY", "Binary", "child_environment", "codex_home", "find"]

ENVIRONMENT_KEY = "LANEWAY_CODEX_BIN"


def find(
    flag: str | None = None, configured: str | None = None, environment: Mapping[str, str] | None = None
) -> Binary:
    """The Codex to use. Raises `BinaryError`, whose text says what to do."""
    return find_program(CODEX, flag, configured, os.environ if environment is None else environment)


def _bundled() -> str | None:
    try:
        from codex_cli_bin import bundled_codex_path
    except ImportError:
        return None
    try:
        return str(bundled_codex_path())
    except FileNotFoundError:
        return None


CODEX = Program(
    title="Codex",
    command="codex",
    flag="--codex-bin",
    variable=ENVIRONMENT_KEY,
    older_variable="CODEX_BINARY",
    setting="codex_bin",
    extra="codex",
    bundled=_bundled,
)


def codex_home(environment: Mapping[str, str]) -> str:
    """The folder in which a Codex with this environment keeps its threads."""
    home = environment.get("HOME") or os.path.expanduser("~")
    return os.path.realpath(environment.get("CODEX_HOME") or os.path.join(home, ".codex"))
