"""What a worker wrote to git's own folder: compares indexes, and references before and after. Blocking."""

from __future__ import annotations

import os
from pathlib import Path

from laneway.wire.git import APART, git_apart

MAX_LISTED_BYTES = 512 * 1024 * 1024
LISTING_S = 60.0


def index_is_same(shadow: Path, before: Path, after: Path) -> bool:
    """Whether two indexes hold the same, apart from what git remembers of the files' times.

    `shadow` is the folder of a shadow whose repository names contents as the user's does.
    """
    listed = [_entries(shadow / "repository", index) for index in (before, after)]
    return listed[0] is not None and listed[0] == listed[1]


def _entries(repository: Path, index: Path) -> bytes | None:
    place = {**APART, "GIT_DIR": os.fspath(repository), "GIT_INDEX_FILE": os.fspath(index)}
    ran = git_apart(
        repository,
        *("ls-files", "--stage", "-v", "-z"),
        max_bytes=MAX_LISTED_BYTES,
        timeout_s=LISTING_S,
        place=place,
    )
    return ran.stdout if ran.exit_code == 0 and not ran.is_cut else None
