"""What `/review` should look at, or a sentence that says why there is nothing.

Asks git first: Codex takes any name of a branch or a commit, and a model would have to find out.
Blocking.
"""

from __future__ import annotations

from pathlib import Path

from laneway.commands.git_words import why_not
from laneway.commands.words import one_line
from laneway.core.offers import Review, ReviewBranch, ReviewCommit, ReviewInstructions, ReviewUncommitted
from laneway.wire.git import git
from laneway.wire.git_view import GitView, git_view


def target(folder: Path, words: str) -> Review | str:
    match words.split():
        case []:
            return _without_git(folder) or _uncommitted(folder)
        case ["branch" | "commit" as what]:
            sample = "main" if what == "branch" else "HEAD~1"
            return f"Name the {what}, for example `/review {what} {sample}`."
        case ["branch", name]:
            return _without_git(folder) or _branch(folder, name)
        case ["commit", name]:
            return _without_git(folder) or _commit(folder, name)
        case _:
            return ReviewInstructions(words)


def _uncommitted(folder: Path) -> Review | str:
    with git_view(folder) as view:
        changed = view.git("status", "--porcelain", max_bytes=1) if isinstance(view, GitView) else view
    if changed.code == 0 and not changed.out:
        return (
            "There are no uncommitted changes to review. Try `/review branch main` or `/review commit HEAD`."
        )
    return ReviewUncommitted()


def _branch(folder: Path, name: str) -> Review | str:
    if _commit_of(folder, name) is None:
        return f"There is no branch {one_line(name)} here. See the branches with `git branch --all`."
    return ReviewBranch(name)


def _commit(folder: Path, name: str) -> Review | str:
    sha = _commit_of(folder, name)
    if sha is None:
        return f"There is no commit {one_line(name)} here. See the commits with `git log --oneline`."
    with git_view(folder) as view:
        told = view.git("log", "-1", "--format=%s", sha).out if isinstance(view, GitView) else b""
    return ReviewCommit(sha, told.decode("utf-8", "replace").strip())


def _commit_of(folder: Path, name: str) -> str | None:
    if name.startswith("-") or "\0" in name:
        return None  # an option, or what no process can be given: not a name
    found = git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return found.out.decode().strip() if found.code == 0 else None


def _without_git(folder: Path) -> str:
    """What to do where git has nothing to say; empty where it has."""
    problem = why_not(folder)
    return f"{problem} Say what to review: `/review the error handling in app.py`." if problem else ""
