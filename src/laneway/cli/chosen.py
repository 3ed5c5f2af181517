"""The settings that a command runs with. Loads nothing else: servers read them before they greet."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from laneway.base.settings import Settings, load


def settings_for(options: Namespace, folder: Path, **flags: object) -> Settings:
    """The settings that hold in a folder. What was ignored is told, here and only here."""
    settings = load({"codex_bin": options.codex_bin, **flags}, os.environ, folder, Path.home())
    for each in settings.ignored:
        print(f"laneway: {each}", file=sys.stderr)
    return settings
