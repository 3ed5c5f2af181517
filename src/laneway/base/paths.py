"""Where things live on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def is_home_known(environment: Mapping[str, str] | None = None) -> bool:
    """Whether `HOME` names a folder. Without it files would go to `/`, or to the home of another user."""
    return (os.environ if environment is None else environment).get("HOME", "").startswith("/")


def cache_home(environment: Mapping[str, str] | None = None) -> Path:
    """Our folder for what may be lost: `$XDG_CACHE_HOME/laneway`."""
    return _ours("XDG_CACHE_HOME", ".cache", environment, None)


def config_home(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    """Our folder for what the user decides: `$XDG_CONFIG_HOME/laneway`."""
    return _ours("XDG_CONFIG_HOME", ".config", environment, home)


def state_home(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    """Our folder for what must not: `$XDG_STATE_HOME/laneway`."""
    return _ours("XDG_STATE_HOME", ".local/state", environment, home)


def _ours(variable: str, default: str, environment: Mapping[str, str] | None, home: Path | None) -> Path:
    named = (os.environ if environment is None else environment).get(variable, "")
    # The specification wants relative values ignored; that also keeps a repository from holding them.
    return (Path(named) if named.startswith("/") else (home or Path.home()) / default) / "laneway"
