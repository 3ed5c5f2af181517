"""Detects a full disk, and has the one sentence that says so.

Programs that we start often end without a reason; whether the disk is full is tested, not guessed.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
TRIED_BYTES = 64 * 1024
"""With less free space than this, no database can be opened."""


def is_full(problem: BaseException) -> bool:
    """Whether the system refused because there is no space left."""
    return isinstance(problem, OSError) and problem.errno in FULL


def full_text(folder: Path | str) -> str:
    """The message for people."""
    from laneway.base.plain import plain_code

    return f"The disk is full: free some space for {plain_code(str(folder))} and try again."


def is_disk_full(folder: Path) -> bool:
    """Whether nothing more can be written there, tested with a file that is unlinked at once."""
    while not folder.is_dir():
        if folder == folder.parent:
            return False
        folder = folder.parent
    path = folder / f".laneway-{os.urandom(8).hex()}.tmp"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        return is_full(problem)
    try:
        os.unlink(path)
        return os.write(fd, bytes(TRIED_BYTES)) < TRIED_BYTES
    except OSError as problem:
        return is_full(problem)
    finally:
        os.close(fd)
