"""The settings that a command runs with.

Imports little: servers read their settings before they answer a client's first request.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from laneway.app.options import ClaudeChoice, CodexChoice
from laneway.base.plain import plain
from laneway.base.settings import Settings, load

_warned: set[str] = set()
"""Warnings that this process has printed already: some commands load the settings more than once."""


def settings_for(options: Namespace, folder: Path, **flags: object) -> Settings:
    """The settings that hold in a folder, for a command that runs Codex."""
    return settings_in({"codex_bin": options.codex_bin, **flags}, folder)


def codex_choice(options: Namespace, settings: Settings) -> CodexChoice:
    """The Codex that a command runs, by its flags and the settings."""
    return CodexChoice(options.codex_bin, settings.codex_bin, options.rehearse)


def claude_choice(options: Namespace, settings: Settings) -> ClaudeChoice:
    """The Claude Code that a command runs, by its flags and the settings."""
    return ClaudeChoice(
        options.claude_bin,
        settings.claude_bin,
        options.rehearse,
        settings.claude_idle_minutes * 60.0,
        settings.claude_awake,
    )


def settings_in(flags: Mapping[str, object], folder: Path = Path()) -> Settings:
    """The settings that hold in a folder. Ignored values are reported once, on standard error."""
    settings = load(flags, os.environ, folder, Path.home())
    for ignored in settings.ignored:
        line = f"laneway: {plain(str(ignored))}"
        if line not in _warned:
            _warned.add(line)
            print(line, file=sys.stderr)
    return settings
