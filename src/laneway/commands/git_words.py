"""What git has against a folder or a command, in words for a person."""

from __future__ import annotations

from pathlib import Path

from laneway.base.plain import code_label, plain_code
from laneway.wire.git import NEVER_RAN, GitRun, git
from laneway.wire.git_view import odd_git_file

MAX_LINE_CHARS = 300
"""Of a complaint that is shown to a person: a sentence with a long path in it."""

_NOT_HERE = "fatal: not a git repository (or any"
"""How git's complaint begins where no folder above is a repository, in the locale that it is given."""


def why_not(folder: Path) -> str:
    """Why git has nothing to say of a folder, as a sentence; empty where it lies in a repository."""
    if odd := odd_git_file(folder):
        return told(folder, GitRun(NEVER_RAN, complaint=f"{odd} is not a regular file."))
    ran = git(folder, "rev-parse", "--show-toplevel")
    return "" if ran.code == 0 and ran.line else told(folder, ran)


def told(folder: Path, ran: GitRun) -> str:
    """The sentence for a git that found no repository to work with."""
    if ran.code == NEVER_RAN:
        return plain_code(ran.complaint)
    if ran.complaint.startswith(_NOT_HERE):
        return plain_code(f"{folder} is not in a git repository.")
    return plain_code(f"Git does not work in {folder}: {first_line(ran.complaint)}.")


def first_line(complaint: str) -> str:
    """What git has against it, for a person to read. Without a full stop."""
    line = complaint.partition("\n")[0].removeprefix("fatal: ").rstrip(".") or "it was ended"
    return code_label(line, MAX_LINE_CHARS)
