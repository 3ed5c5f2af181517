"""Which folder another machine is to work in: from a folder here to a repository's name and a path in it.

Pure, apart from resolving links. Both machines name the repository in their own settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from laneway.base.errors import UsageError
from laneway.base.plain import code_label


class Placed(msgspec.Struct, frozen=True):
    """A folder as two machines can both name it."""

    repository: str
    path: str
    """Relative to the repository; empty for its top."""
    folder: str
    """Here; it need not exist."""
    top: str
    """Of the repository, here."""


def placed(cwd: Path, named: str | None, repositories: Mapping[str, Path]) -> Placed | None:
    """The innermost repository of the settings around the folder; none if it is in none of them."""
    folder = os.path.realpath(os.path.join(cwd, os.path.expanduser(named or "")))
    found: list[Placed] = []
    for name, place in repositories.items():
        top = os.path.realpath(place.expanduser())
        if folder == top or folder.startswith(top.rstrip("/") + "/"):
            path = os.path.relpath(folder, top)
            found.append(Placed(name, "" if path == "." else path, folder, top))
    return max(found, key=lambda each: len(each.top), default=None)


def placed_for(node: str, cwd: Path, named: str | None, repositories: Mapping[str, Path]) -> Placed:
    place = placed(cwd, named, repositories)
    if place is None:
        folder = os.path.join(cwd, os.path.expanduser(named or ""))
        raise UsageError(
            f"{code_label(folder)} is in no repository of jobs.repositories, so {node} cannot know which"
            f" folder is meant: `laneway config set jobs.repositories.NAME PATH`, here and on {node}."
        )
    return place


def moved_scope(scope: tuple[str, ...], top: str) -> tuple[str, ...]:
    """Absolute paths in the repository become relative ones: it lies elsewhere on the other machine."""
    prefix = top.rstrip("/") + "/"
    return tuple(each[len(prefix) :] if each.startswith(prefix) else each for each in scope)
