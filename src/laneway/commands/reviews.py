"""The target of `/review`: parses its arguments, or says in a sentence why there is nothing to review.

Asks git first: Codex accepts any name of a branch or a commit, and only the model would find out that
it does not exist. Blocking.
"""

from __future__ import annotations

from pathlib import Path

from laneway.commands.git_problems import git_problem
from laneway.commands.texts import one_line
from laneway.core.offers import Review, ReviewBranch, ReviewCommit, ReviewInstructions, ReviewUncommitted
from laneway.wire.git import git
from laneway.wire.git_view import GitView, git_view


def target(folder: Path, arguments: str) -> Review | str:
    match arguments.split():
        case []:
            return _git_advice(folder) or _uncommitted(folder)
        case ["branch" | "commit" as kind]:
            sample = "main" if kind == "branch" else "HEAD~1"
            return f"Name the {kind}, for example `/review {kind} {sample}`."
        case ["branch", name]:
            return _git_advice(folder) or _branch(folder, name)
        case ["commit", name]:
            return _git_advice(folder) or _commit(folder, name)
        case _:
            return ReviewInstructions(arguments)


def _uncommitted(folder: Path) -> Review | str:
    with git_view(folder) as view:
        status = view.git("status", "--porcelain", max_bytes=1) if isinstance(view, GitView) else view
    if status.exit_code == 0 and not status.stdout:
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
        subject = view.git("log", "-1", "--format=%s", sha).stdout if isinstance(view, GitView) else b""
    return ReviewCommit(sha, subject.decode("utf-8", "replace").strip())


def _commit_of(folder: Path, name: str) -> str | None:
    if name.startswith("-") or "\0" in name:
        return None  # git would take it for an option, or no process can be given it
    run = git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return run.stdout.decode().strip() if run.exit_code == 0 else None


def _git_advice(folder: Path) -> str:
    """Why git does not work here and what to type instead; empty where git works."""
    problem = git_problem(folder)
    return f"{problem} Say what to review: `/review the error handling in app.py`." if problem else ""
