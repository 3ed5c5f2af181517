"""The paths of a worker's report as paths of the work tree. Blocking: looks at which files are there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from laneway.jobs.worker import relative_to


def in_tree(
    paths: Iterable[str], tree: str, cwd: str, original: Callable[[str], str] = str
) -> tuple[str, ...]:
    """A report is relative to `cwd`; a path that is only there from the top of the tree is taken from there.

    `original` makes a path of the tree of one in a copy. What is not in the tree stays as it is told.
    """
    return tuple(_in_tree(original(path), tree, cwd) for path in paths)


def _in_tree(told: str, tree: str, cwd: str) -> str:
    try:
        path, from_top = (relative_to(tree, os.path.join(folder, told)) for folder in (cwd, tree))
    except ValueError:
        return told  # a name that no file can have
    if from_top and not _is_there(tree, path) and _is_there(tree, from_top):
        return from_top
    return path or told


def _is_there(tree: str, path: str) -> bool:
    return bool(path) and os.path.lexists(os.path.join(tree, path))
