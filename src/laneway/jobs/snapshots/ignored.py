"""Which files and folders of a repository git ignores, asked of git itself.

Rules are those of the repository and of the user; the user's index says what is tracked, which no rule
ignores. Git runs on a view (`laneway.wire.git_view`): nothing that a repository configures is run.
"""

from __future__ import annotations

import os
from itertools import zip_longest
from pathlib import Path

import msgspec

from laneway.jobs.snapshots.work_tree import refused
from laneway.wire.git import GitRun
from laneway.wire.git_view import git_view

MAX_LISTED_BYTES = 64 * 1024 * 1024
"""Of git's list: some million names. Past it the tree is refused."""
LISTING_S = 120.0
"""A cold disk with 100,000 files needs seconds."""
_LIST = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")


class IgnoredPaths(msgspec.Struct, frozen=True):
    """What git ignores in one repository."""

    folders: frozenset[bytes] = frozenset()
    """Folders that a rule names, relative to the work tree that is recorded. Git does not look into them."""
    files: dict[bytes, frozenset[bytes]] = {}
    """By the folder that they are in, the names of other files."""
    head: str = ""


def ignored_in(top: Path, prefix: bytes = b"") -> IgnoredPaths | None:
    """For a repository with this work tree; none where the folder is no repository of its own."""
    with git_view(top) as view:
        if isinstance(view, GitRun):
            raise refused(top, view)
        if os.fspath(view.top) != os.path.realpath(top):
            return None
        ran = view.git(*_LIST, max_bytes=MAX_LISTED_BYTES, timeout_s=LISTING_S)
        if ran.exit_code != 0 or ran.is_cut:
            raise refused(top, ran)
        folders, files = _sorted_out(ran.stdout.split(b"\0")[:-1], prefix)
        return IgnoredPaths(folders, files, view.head or "")


def _sorted_out(names: list[bytes], prefix: bytes) -> tuple[frozenset[bytes], dict[bytes, frozenset[bytes]]]:
    """Git also lists folders that no rule names, where all that is in them is ignored: and then that, too."""
    names.sort()
    folders: set[bytes] = set()
    files: dict[bytes, set[bytes]] = {}
    for name, follower in zip_longest(names, names[1:], fillvalue=b""):
        if not name.endswith(b"/"):
            folder, _, file = (prefix + name).rpartition(b"/")
            files.setdefault(folder, set()).add(file)
        elif not follower.startswith(name):
            folders.add(prefix + name[:-1])
    return frozenset(folders), {folder: frozenset(found) for folder, found in files.items()}
