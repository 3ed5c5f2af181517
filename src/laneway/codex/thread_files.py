"""Finds and repairs the file of a Codex thread: among the sessions, the archived ones, or in the wrong place.

Codex moves the file first and records the move afterwards. Killed in between, it expects the file where
it is not, and then neither resumes nor unarchives the thread (0.163). All functions block.
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
"""The beginning of the file's name: its day names the folder that it belongs in."""


class ThreadFile(msgspec.Struct, frozen=True):
    expected_path: Path
    """Where Codex expects it."""
    actual_path: Path | None
    """Where it is; none if it was not found."""
    archived_at: float | None = None
    """When it was moved to the archived ones, in seconds since 1970, if it is there."""

    @property
    def is_misplaced(self) -> bool:
        return self.actual_path is not None and self.actual_path != self.expected_path

    @property
    def is_archived(self) -> bool:
        """According to Codex."""
        return is_archived(self.expected_path)

    def repair(self) -> None:
        """Move it to where Codex expects it. Raises `OSError`."""
        if self.actual_path is not None and self.is_misplaced and not os.path.lexists(self.expected_path):
            self.expected_path.parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.actual_path, self.expected_path)


def is_archived(path: Path) -> bool:
    return path.parent.name == ARCHIVED


def find(expected_path: Path) -> ThreadFile:
    """Look for it where Codex expects it, else in the other of the two places."""
    for path in (expected_path, _other_place(expected_path)):
        try:
            status = os.stat(path) if path is not None else None
        except OSError:
            continue
        if path is not None and status is not None:
            # ctime is the time of the move: nothing changes an archived file after it.
            return ThreadFile(expected_path, path, status.st_ctime if is_archived(path) else None)
    return ThreadFile(expected_path, None)


def has_writer(codex_home: Path, thread_id: str) -> bool:
    """Whether a Codex has locked the thread, even before it writes to it; false if there is no lock file."""
    try:
        fd = os.open(codex_home / LOCKS / f"{thread_id}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(fd)
    return False


def _other_place(path: Path) -> Path | None:
    """The path of the file in the other place; none for a name that Codex does not use."""
    if is_archived(path):
        day = _DAY.match(path.name)
        return path.parent.parent.joinpath(SESSIONS, *day.groups(), path.name) if day else None
    if len(path.parents) > 4 and path.parents[3].name == SESSIONS:
        return path.parents[4] / ARCHIVED / path.name
    return None
