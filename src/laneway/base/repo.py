"""What git knows about a folder, read from its files: no process, so it can be asked every turn.

Right for plain repositories, linked worktrees, submodules and detached heads; outside of
git there is nothing, and nothing is made up.
"""

from __future__ import annotations

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
    for candidate in (folder, *folder.parents):
        git = _git_dir(candidate / ".git")
        if git is not None:
            return Repo(candidate, candidate.name, _branch(git))
    return None


def detached_at(root: Path) -> str | None:
    """The commit, shortened, that a repository's head stands on without a branch."""
    git = _git_dir(root / ".git")
    head = _head(git) if git is not None else ""
    return head[:SHORT_COMMIT] if len(head) >= 40 and not set(head) - set("0123456789abcdef") else None


def _git_dir(dot_git: Path) -> Path | None:
    """`.git` is a folder, or in worktrees and submodules a file that names one."""
    try:
        if dot_git.is_dir():
            return dot_git if (dot_git / "HEAD").exists() else None
        text = dot_git.read_text(encoding="utf-8", errors="replace")[:MAX_HEAD_BYTES]
    except OSError:
        return None
    word, _, path = text.strip().partition(": ")
    if word != "gitdir" or not path:
        return None
    named = (dot_git.parent / path).resolve()
    return named if named.is_dir() else None


def _head(git: Path) -> str:
    try:
        return (git / "HEAD").read_text(encoding="utf-8", errors="replace")[:MAX_HEAD_BYTES].strip()
    except OSError:
        return ""


def _branch(git: Path) -> str | None:
    head = _head(git)
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None
