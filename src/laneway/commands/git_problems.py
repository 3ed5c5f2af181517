"""Sentences for users that say why git does not work in a folder, or why a git command failed."""

from __future__ import annotations

from pathlib import Path

from laneway.base.plain import code_label, plain_code
from laneway.wire.git import NEVER_RAN, GitRun, git
from laneway.wire.git_view import odd_git_file

MAX_LINE_CHARS = 300
"""Of one error of git: a sentence with a long path in it."""

_NOT_A_REPOSITORY = "fatal: not a git repository (or any"
"""How git's error begins where no folder above is a repository, in the locale that we run git in."""


def git_problem(folder: Path) -> str:
    """Why git does not work in a folder, as a sentence; empty where the folder is in a repository."""
    if odd := odd_git_file(folder):
        return problem_text(folder, GitRun(NEVER_RAN, error=f"{odd} is not a regular file."))
    run = git(folder, "rev-parse", "--show-toplevel")
    return "" if run.exit_code == 0 and run.line else problem_text(folder, run)


def problem_text(folder: Path, run: GitRun) -> str:
    """The sentence for a git that found no repository to work with."""
    if run.exit_code == NEVER_RAN:
        return plain_code(run.error)
    if run.error.startswith(_NOT_A_REPOSITORY):
        return plain_code(f"{folder} is not in a git repository.")
    return plain_code(f"Git does not work in {folder}: {first_line(run.error)}.")


def first_line(error: str) -> str:
    """The first line of git's error, safe to display, without a full stop."""
    line = error.partition("\n")[0].removeprefix("fatal: ").rstrip(".") or "it was ended"
    return code_label(line, MAX_LINE_CHARS)
