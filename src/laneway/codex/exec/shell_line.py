"""Takes the shell off a command line that Codex reports, so that people see what was to be run. Pure."""

from __future__ import annotations

import shlex

MAX_CHARS = 10_000
"""Longer lines stay as they are: to take them apart costs more than it tells."""


def without_shell(line: str) -> str:
    """What the shell was to run: `rm x` of `/bin/bash -lc 'rm x'`."""
    if len(line) > MAX_CHARS:
        return line
    try:
        words = shlex.split(line)
    except ValueError:
        return line
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else line
