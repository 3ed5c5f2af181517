"""The command that starts this Laneway, as it is written into a client's config.

A client that was started from a desktop does not have the PATH of your terminal. So a user's
own config gets the bare name `laneway` only if it is in a folder that every program searches,
and its full path otherwise. A project's config goes to other people's machines: it gets the
bare name wherever that works here at all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from laneway.base.installed import installed_how

PLAIN_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
"""The PATH of a program that was started from a desktop and not from a terminal."""
NAME = "laneway"


class LaunchCommand(msgspec.Struct, frozen=True):
    """The words of the command, and notes about it."""

    words: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What the user should know about it, in sentences."""


def choose(
    *,
    shared: bool,
    environment: Mapping[str, str],
    argv0: str | None = None,
    python: str = sys.executable,
    plain_path: tuple[str, ...] = PLAIN_PATH,
) -> LaunchCommand:
    """The command for a config of the user's own, or for one that is shared."""
    path = _executable(environment, sys.argv[0] if argv0 is None else argv0, python)
    if path is None:
        words = (python, "-m", NAME)
        return LaunchCommand(words, ("There is no `laneway` executable, so this Python is written instead.",))
    folders = environment.get("PATH", "").split(os.pathsep) if shared else plain_path
    if (on_path := _which(folders)) and os.path.realpath(on_path) == os.path.realpath(path):
        return LaunchCommand((NAME,))
    return LaunchCommand((path,), _notes(path, shared=shared))


def _notes(path: str, *, shared: bool) -> tuple[str, ...]:
    notes = []
    if shared:
        notes.append("The path is of this machine: others who use the project need their own.")
    if {".cache", "Caches", "archive-v0"} & set(Path(path).parts):
        notes.append(
            f"This Laneway lies in a cache that may be emptied: install it with {installed_how().staying()}, "
            "then run this again."
        )
    return tuple(notes)


def _executable(environment: Mapping[str, str], argv0: str, python: str) -> str | None:
    """The executable that was called, else the first on PATH, else the one beside this Python."""
    if os.path.basename(argv0) == NAME and os.sep in argv0 and _is_executable(argv0):
        return os.path.abspath(argv0)
    on_path = _which(environment.get("PATH", "").split(os.pathsep))
    if on_path is not None:
        return os.path.abspath(on_path)
    beside = os.path.join(os.path.dirname(python), NAME)
    return beside if _is_executable(beside) else None


def _which(folders: list[str] | tuple[str, ...]) -> str | None:
    paths = (os.path.join(folder, NAME) for folder in folders if folder)
    return next((path for path in paths if _is_executable(path)), None)


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
