"""Laneway's folders on this machine: cache, config and state (XDG)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def is_home_known(environment: Mapping[str, str] | None = None) -> bool:
    """Whether `HOME` names a folder. Without it files would go to `/`, or to the home of another user."""
    return (os.environ if environment is None else environment).get("HOME", "").startswith("/")


def cache_home(environment: Mapping[str, str] | None = None) -> Path:
    """Our folder for files that may be lost: `$XDG_CACHE_HOME/laneway`."""
    return _ours("XDG_CACHE_HOME", ".cache", environment, None)


def config_home(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    """Our folder for the user's settings: `$XDG_CONFIG_HOME/laneway`."""
    return _ours("XDG_CONFIG_HOME", ".config", environment, home)


def state_home(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    """Our folder for files that must not be lost: `$XDG_STATE_HOME/laneway`."""
    return _ours("XDG_STATE_HOME", ".local/state", environment, home)


def _ours(variable: str, default: str, environment: Mapping[str, str] | None, home: Path | None) -> Path:
    folder = (os.environ if environment is None else environment).get(variable, "")
    # The XDG specification wants relative values ignored; that also keeps these folders out of a repository.
    return (Path(folder) if folder.startswith("/") else (home or Path.home()) / default) / "laneway"
