"""Which work tree a folder is in, and whether git is in the middle of something there.

What can be neither recorded nor changed back is a `TreeRefused` with one sentence.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from laneway.base.errors import TreeRefused
from laneway.base.plain import code_label
from laneway.base.repo import git_dir
from laneway.wire.git import NEVER_RAN, GitRun, rev_parse
from laneway.wire.git_view import odd_git_file

MAX_COMPLAINT_CHARS = 300
_UNDER_WAY = (
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a series of cherry-picks or reverts"),
    ("BISECT_LOG", "a bisection"),
)
"""Files of git, and the operation that is not finished while they exist."""

NO_REPOSITORY = "is not in a git repository."
"""How that sentence ends."""
_BARE = ("must be run in a work tree", "cannot use bare repository")


class WorkTree(msgspec.Struct, frozen=True):
    """A repository's work tree: also a linked one, or a submodule's."""

    top: Path
    git_dir: str
    """Of this work tree; a linked one has its own."""
    objects: str
    """The folder with the repository's contents."""
    algorithm: str
    """`sha1` or `sha256`: how the repository names contents."""


def work_tree(folder: Path) -> WorkTree:
    """The work tree that a folder is in."""
    if odd := odd_git_file(folder):
        raise TreeRefused(f"{code_label(odd)} is not a regular file.", str(folder))
    real = Path(os.path.realpath(folder))
    answers = rev_parse(
        real, "--show-toplevel", "--absolute-git-dir", "--git-path objects", "--show-object-format"
    )
    if isinstance(answers, GitRun):
        raise refused(folder, answers)
    top, own, objects, algorithm = answers
    own = os.path.join(real, own)
    linked = git_dir(top)
    if linked is None or not os.path.samefile(linked, own):
        raise TreeRefused(
            f"The configuration of {code_label(own)} names another work tree: {code_label(top)}.", top
        )
    return WorkTree(
        top=Path(top),
        git_dir=own,
        objects=os.path.realpath(os.path.join(real, objects)),
        algorithm=algorithm,
    )


def under_way(tree_git_dir: str) -> str:
    """The operation that a person, or git, has not finished in a work tree; empty if there is none."""
    for name, operation in _UNDER_WAY:
        if os.path.lexists(os.path.join(tree_git_dir, name)):
            return operation
    return ""


def refused(folder: Path, ran: GitRun) -> TreeRefused:
    """Git's complaint as a sentence."""
    if ran.exit_code == NEVER_RAN:
        return TreeRefused(ran.error, str(folder))
    if any(words in ran.error for words in _BARE):
        text = (
            f"{code_label(str(folder))} is in a repository without a work tree: nothing can be edited there."
        )
    elif ran.error.startswith("fatal: not a git repository (or any"):
        text = f"{code_label(str(folder))} {NO_REPOSITORY}"
    else:
        line = ran.error.partition("\n")[0].removeprefix("fatal: ").rstrip(".") or "it was ended"
        text = f"Git does not work in {code_label(str(folder))}: {code_label(line, MAX_COMPLAINT_CHARS)}."
    return TreeRefused(text, str(folder))
