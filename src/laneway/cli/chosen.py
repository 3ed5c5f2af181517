"""The settings that a command runs with. Loads nothing else: servers read them before they greet."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from laneway.base.plain import plain
from laneway.base.settings import Settings, load

_told: set[str] = set()
"""What this process has said already: some commands need the settings more than once."""


def settings_for(options: Namespace, folder: Path, **flags: object) -> Settings:
    """The settings that hold in a folder, for a command that runs Codex."""
    return settings_here({"codex_bin": options.codex_bin, **flags}, folder)


def settings_here(flags: Mapping[str, object], folder: Path = Path()) -> Settings:
    """The settings that hold in a folder. What was ignored is said once on standard error."""
    settings = load(flags, os.environ, folder, Path.home())
    for each in settings.ignored:
        line = f"laneway: {plain(str(each))}"
        if line not in _told:
            _told.add(line)
            print(line, file=sys.stderr)
    return settings
