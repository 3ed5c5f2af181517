"""One lock for each thread that an engine keeps in a process of its own: two would split its history.

It is handed on to the guardian of the process, so that it is free only when that process is really gone.
"""

from __future__ import annotations

import os
from pathlib import Path

from laneway.base.errors import ActiveWriter
from laneway.base.paths import state_home
from laneway.store.lock_files import LockFile, holder_note, take_lock_file


class ThreadLocks:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_home() / "threads"

    def take(self, thread_id: str) -> LockFile:
        """Raises `ActiveWriter` if another process has the thread. `thread_id` must be a plain name."""
        path = self._folder / f"{thread_id}.lock"
        lock = take_lock_file(path, str(os.getpid()))
        if lock is None:
            raise ActiveWriter(thread_id, _pid_in(holder_note(path)))
        return lock


def _pid_in(note: str) -> int | None:
    try:
        return int(note)
    except ValueError:
        return None
