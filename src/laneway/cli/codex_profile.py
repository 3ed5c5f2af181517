"""Codex's configuration profiles (`-p NAME`), read for threads of app-server.

`codex exec -p` lays `$CODEX_HOME/NAME.config.toml` over the user's own `config.toml`. The app-server
knows no profiles (0.163), so the file is read here and sent as the config overrides of a thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laneway.base.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def codex_home(environment: Mapping[str, str] | None = None) -> Path:
    """Where Codex keeps its configuration and its threads."""
    path = (os.environ if environment is None else environment).get("CODEX_HOME")
    return Path(path) if path else Path.home() / ".codex"


def profile(name: str, home: Path) -> dict[str, Any]:
    """A profile as config overrides with dotted keys; a `UsageError` if there is none of that name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"A profile name consists of letters, digits, - and _, unlike {name!r}.")
    file = home / f"{name}.config.toml"
    table = _read(file)
    if table is None:
        tables = (_read(home / "config.toml") or {}).get("profiles")
        table = tables.get(name) if isinstance(tables, dict) else None  # where older versions keep them
    if not isinstance(table, dict):
        raise UsageError(f"There is no profile {name}: Codex looks for it in {file}.")
    return flat(table)


def flat(table: dict[str, Any], above: str = "") -> dict[str, Any]:
    """A table as dotted keys, so that single values of it can be overridden."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        # A key that contains a dot cannot be written that way: its table stays whole.
        if isinstance(value, dict) and value and not any("." in inner for inner in value):
            values |= flat(value, f"{above}{key}.")
        else:
            values[f"{above}{key}"] = value
    return values


def _read(file: Path) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise UsageError(f"{file} cannot be read: {problem.strerror}.") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"{file} is not valid TOML: {problem}.") from problem
