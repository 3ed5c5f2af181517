"""Which words start this Laneway, to be written into somebody else's config.

A client that was started from a desktop has not the PATH of your terminal. So a user's own
config gets `laneway` only if it lies where every program looks, and its full path
otherwise. A project's config goes to other people's machines: it gets the bare name
wherever that works here at all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from laneway.base.installed import installed_how

PLAIN_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
"""Where a program looks that was started from a desktop and not from a terminal."""
NAME = "laneway"


class Command(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What the user should know of it, in sentences."""


def choose(
    *,
    shared: bool,
    environment: Mapping[str, str],
    argv0: str | None = None,
    python: str = sys.executable,
    plain_path: tuple[str, ...] = PLAIN_PATH,
) -> Command:
    """The words for a config of the user's own, or for one that others share."""
    path = _executable(environment, sys.argv[0] if argv0 is None else argv0, python)
    if path is None:
        words = (python, "-m", NAME)
        return Command(words, ("There is no `laneway` executable, so this Python is written instead.",))
    folders = environment.get("PATH", "").split(os.pathsep) if shared else plain_path
    if (found := _which(folders)) and os.path.realpath(found) == os.path.realpath(path):
        return Command((NAME,))
    return Command((path,), _notes(path, shared=shared))


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
    """The one that was called, else the one that a shell would find, else the one beside this Python."""
    if os.path.basename(argv0) == NAME and os.sep in argv0 and _is_executable(argv0):
        return os.path.abspath(argv0)
    found = _which(environment.get("PATH", "").split(os.pathsep))
    if found is not None:
        return os.path.abspath(found)
    beside = os.path.join(os.path.dirname(python), NAME)
    return beside if _is_executable(beside) else None


def _which(folders: list[str] | tuple[str, ...]) -> str | None:
    paths = (os.path.join(folder, NAME) for folder in folders if folder)
    return next((path for path in paths if _is_executable(path)), None)


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
