"""Lock files that name their holder: held by one process, and removed when it gives the lock back.

The `flock` decides, so that a lock is free as soon as its process has ended, however that happens; the
text in the file only tells people, and error messages, who that is.
"""

from __future__ import annotations

import os
from pathlib import Path

from laneway.store.files import make_folder, trouble, write_all
from laneway.store.gates import take_lock

MAX_NOTE_BYTES = 200
"""More than a holder writes about itself."""


class LockFile:
    """A held lock. `fd` may be handed on to a child, which then holds it, too; -1 once it is released."""

    def __init__(self, fd: int, path: Path) -> None:
        self.fd = fd
        self._path = path

    def release(self) -> None:
        """Safe to call twice."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            try:
                self._path.unlink(missing_ok=True)  # before it is free: whoever waits locks a new file
            finally:
                os.close(fd)


def take_lock_file(path: Path, note: str) -> LockFile | None:
    """Lock the file and write who holds it; none if another process does. Makes its folder."""
    make_folder(path.parent)
    fd = take_lock(path)
    if fd is None:
        return None
    try:
        os.ftruncate(fd, 0)
        write_all(fd, note.encode()[:MAX_NOTE_BYTES])
    except OSError as problem:
        os.close(fd)
        raise trouble(path, problem) from problem
    return LockFile(fd, path)


def holder_note(path: Path) -> str:
    """What the holder wrote; empty if it has just been taken, or just removed."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_NOTE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
