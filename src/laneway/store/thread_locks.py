"""One lock for each thread that an engine keeps in a process of its own: two would split its history.

The `flock` decides, and the file names the holder for people. It is handed on to the guardian of the
process, so that it is free only when that process is really gone. Files are removed with the lock.
"""

from __future__ import annotations

import os
from pathlib import Path

from laneway.base.errors import ActiveWriter
from laneway.base.paths import state_home
from laneway.store.files import make_folder, trouble
from laneway.store.gates import take_lock

MAX_PID_BYTES = 32


class ThreadLock:
    """A held lock."""

    def __init__(self, fd: int, path: Path) -> None:
        self.fd = fd
        self._path = path

    def release(self) -> None:
        """Safe to call twice."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            self._path.unlink(missing_ok=True)  # before it is free: whoever waits locks a new file
            os.close(fd)


class ThreadLocks:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_home() / "threads"

    def take(self, thread_id: str) -> ThreadLock:
        """Raises `ActiveWriter` if another process has the thread. `thread_id` must be a plain name."""
        make_folder(self._folder)
        path = self._folder / f"{thread_id}.lock"
        fd = take_lock(path)
        if fd is None:
            raise ActiveWriter(thread_id, _holder(path))
        try:
            os.ftruncate(fd, 0)
            os.write(fd, str(os.getpid()).encode())
        except OSError as problem:
            os.close(fd)
            raise trouble(path, problem) from problem
        return ThreadLock(fd, path)


def _holder(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            return int(file.read(MAX_PID_BYTES))
    except (OSError, ValueError):
        return None  # just taken, or just removed
