"""The git repository and branch of a folder, read from git's files without a process.

Cheap enough for every turn. Right for plain repositories, linked worktrees, submodules and detached
heads; outside of git there is no result. A sandboxed model can make a `.git` of its own, so the files
may be anything: only small regular ones are read, without blocking.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from laneway.base.foreign_files import NotRegular, read_regular

MAX_HEAD_BYTES = 4096
"""A HEAD file is one line; a longer one is not git's."""
SHORT_COMMIT = 12
"""Characters of a commit: never ambiguous, still short."""


NO_BRANCH = ".invalid"
"""The branch in HEAD where git keeps its references in a table that we do not read."""


class Repo(msgspec.Struct, frozen=True):
    root: Path
    name: str
    branch: str | None
    """None when the head is detached."""


def find_repo(folder: Path) -> Repo | None:
    """The repository of a folder, or none."""
    root = os.fspath(folder)  # plain strings: called every turn, and paths would take five times as long
    while True:
        git = git_dir(root)
        if git is not None:
            return Repo(Path(root), os.path.basename(root), _branch(git))
        parent = os.path.dirname(root)
        if parent == root:
            return None
        root = parent


def detached_at(root: Path) -> str | None:
    """The shortened commit of a detached HEAD."""
    git = git_dir(os.fspath(root))
    head = _head(git) if git is not None else ""
    return head[:SHORT_COMMIT] if len(head) >= 40 and not set(head) - set("0123456789abcdef") else None


def git_dir(root: str) -> str | None:
    """The git directory of a work tree: its `.git`, or the folder that a file of that name points to."""
    dot_git = os.path.join(root, ".git")
    try:
        mode = os.stat(dot_git).st_mode
        if stat.S_ISDIR(mode):
            return dot_git if os.path.lexists(os.path.join(dot_git, "HEAD")) else None
        word, _, path = _line_of(dot_git).partition(": ")
        if word != "gitdir" or not path:
            return None
        target = os.path.realpath(os.path.join(root, path))
        return target if os.path.isdir(target) else None
    except (OSError, ValueError):  # missing, no file, or a name that no file can have
        return None


def _head(git: str) -> str:
    path = os.path.join(git, "HEAD")
    try:
        return _line_of(path, follow_links=False)
    except NotRegular:
        return _linked(path)
    except OSError:
        return ""


def _linked(path: str) -> str:
    """A HEAD in git's old format: a link to the branch. A link to anything else is ignored."""
    try:
        target = os.readlink(path)
    except OSError:
        return ""  # no link
    return f"ref: {target}" if target.startswith("refs/") else ""


def _line_of(path: str, *, follow_links: bool = True) -> str:
    return os.fsdecode(read_regular(path, MAX_HEAD_BYTES, follow_links=follow_links)).strip()


def _branch(git: str) -> str | None:
    head = _head(git)
    branch = head.removeprefix("ref: refs/heads/")
    return None if branch in (head, NO_BRANCH) else os.fsencode(branch).decode("utf-8", "replace")
