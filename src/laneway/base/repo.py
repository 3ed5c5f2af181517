"""What git knows about a folder, read from its files: no process, so it can be asked every turn.

Right for plain repositories, linked worktrees, submodules and detached heads; outside of
git there is nothing, and nothing is made up.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

MAX_HEAD_BYTES = 4096
"""A HEAD file is one line; a longer one is none of git's."""
SHORT_COMMIT = 12
"""Letters of a commit: never ambiguous, still short."""


class Repo(msgspec.Struct, frozen=True):
    root: Path
    name: str
    branch: str | None
    """None when the head is detached."""


def find_repo(folder: Path) -> Repo | None:
    """The repository that a folder lies in, or none."""
    root = os.fspath(folder)  # plain strings: asked in every turn, and paths would take five times as long
    while True:
        git = _git_dir(os.path.join(root, ".git"))
        if git is not None:
            return Repo(Path(root), os.path.basename(root), _branch(git))
        above = os.path.dirname(root)
        if above == root:
            return None
        root = above


def detached_at(root: Path) -> str | None:
    """The commit, shortened, that a repository's head stands on without a branch."""
    git = _git_dir(os.path.join(root, ".git"))
    head = _head(git) if git is not None else ""
    return head[:SHORT_COMMIT] if len(head) >= 40 and not set(head) - set("0123456789abcdef") else None


def _git_dir(dot_git: str) -> str | None:
    """`.git` is a folder, or in worktrees and submodules a file that names one."""
    try:
        mode = os.stat(dot_git).st_mode
        if stat.S_ISDIR(mode):
            return dot_git if os.path.exists(os.path.join(dot_git, "HEAD")) else None
        if not stat.S_ISREG(mode):
            return None  # reading from a pipe would take until somebody writes
        text = _start_of(dot_git)
    except OSError:
        return None
    word, _, path = text.partition(": ")
    if word != "gitdir" or not path:
        return None
    named = os.path.realpath(os.path.join(os.path.dirname(dot_git), path))
    return named if os.path.isdir(named) else None


def _head(git: str) -> str:
    try:
        return _start_of(os.path.join(git, "HEAD"))
    except OSError:
        return ""


def _start_of(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(MAX_HEAD_BYTES).decode("utf-8", "replace").strip()


def _branch(git: str) -> str | None:
    head = _head(git)
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None
