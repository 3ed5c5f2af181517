"""Where the file of a Codex thread lies: among the sessions, among the archived ones, or in the wrong place.

Codex moves the file first and writes that down afterwards. Killed in between it believes the file to be where
it is not, and then neither resumes nor unarchives the thread (0.163). Everything blocks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from pathlib import Path

import msgspec

ARCHIVED = "archived_sessions"
SESSIONS = "sessions"
LOCKS = "thread-writer-locks"
_DAY = re.compile(r"rollout-(\d{4})-(\d{2})-(\d{2})T", re.ASCII)
"""How the name of such a file begins: its day is the folder that it lies in."""


class ThreadFile(msgspec.Struct, frozen=True):
    believed: Path
    """Where it is by Codex's own account."""
    found: Path | None
    """Where it is."""
    archived_at: float | None = None
    """When it was moved to the archived ones, in seconds since 1970, if it lies there."""

    @property
    def is_misplaced(self) -> bool:
        return self.found is not None and self.found != self.believed

    @property
    def is_archived(self) -> bool:
        """By Codex's own account."""
        return is_archived(self.believed)

    def put_right(self) -> None:
        """Move it to where Codex believes it to be. Raises `OSError`."""
        if self.found is not None and self.is_misplaced and not os.path.lexists(self.believed):
            self.believed.parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.found, self.believed)


def is_archived(path: Path) -> bool:
    return path.parent.name == ARCHIVED


def find(believed: Path) -> ThreadFile:
    """Look for it where Codex believes it to be, and else in the other of the two places."""
    for path in (believed, _other_place(believed)):
        try:
            status = os.stat(path) if path is not None else None
        except OSError:
            continue
        if path is not None and status is not None:
            # Of the inode: the move is the last thing that happened to an archived file.
            return ThreadFile(believed, path, status.st_ctime if is_archived(path) else None)
    return ThreadFile(believed, None)


def has_writer(codex_home: Path, thread_id: str) -> bool:
    """Whether a Codex has the thread open, also if it has written nothing of it; false where none tells."""
    try:
        fd = os.open(codex_home / LOCKS / f"{thread_id}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as held:
        return held.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(fd)
    return False


def _other_place(path: Path) -> Path | None:
    """The same file if it were archived, or if it were not; none for a name that is not Codex's."""
    if is_archived(path):
        day = _DAY.match(path.name)
        return path.parent.parent.joinpath(SESSIONS, *day.groups(), path.name) if day else None
    if len(path.parents) > 4 and path.parents[3].name == SESSIONS:
        return path.parents[4] / ARCHIVED / path.name
    return None
