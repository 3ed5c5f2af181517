"""Gates: short inter-process locks, held by one thread of one process for microseconds of work.

A gate is a `flock` on a small file, and waiting for it has a limit: a process that was stopped while
holding it (by a debugger, or by Ctrl-Z) must not freeze all the others. If the file was removed while
somebody waited for it, everybody uses the new file. Blocking: from asyncio call through
`asyncio.to_thread`.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laneway.base.errors import StoreError
from laneway.base.foreign_files import open_regular
from laneway.store.files import trouble

PATIENCE_S = 5.0
"""To wait for a gate. Holders need microseconds; one that needs longer is not running."""
SHORTEST_PAUSE_S = 0.0002
LONGEST_PAUSE_S = 0.01
"""Between two tries, because `flock` has no timeout."""


@contextmanager
def gate(path: Path, *, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold the lock until the end of the block. A missing file is made, a missing folder is not."""
    fd = _enter(path, os.O_RDWR | os.O_CREAT, patience_s)
    try:
        yield
    finally:
        os.close(fd)


@contextmanager
def readers_gate(path: Path, *, patience_s: float = PATIENCE_S) -> Iterator[bool]:
    """The same without making the file; false where there is none, and then nothing is locked."""
    try:
        fd = _enter(path, os.O_RDONLY, patience_s)
    except (FileNotFoundError, NotADirectoryError):
        yield False
        return
    try:
        yield True
    finally:
        os.close(fd)


def open_lock(path: Path, flags: int) -> int:
    """Open a lock file: never a link, never a pipe or device that could block."""
    try:
        return open_regular(path, flags, follow_links=False)
    except (FileNotFoundError, NotADirectoryError):
        if flags & os.O_CREAT:
            raise StoreError(f"The folder {path.parent} is gone.", str(path)) from None
        raise
    except OSError as problem:
        raise trouble(path, problem) from problem


def try_flock(fd: int, path: Path, kind: int) -> bool:
    """Lock without waiting; false if somebody else has the lock."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        raise trouble(path, problem) from problem  # some network file systems cannot lock
    return True


def take_lock(path: Path) -> int | None:
    """An open, locked file that is made if it is missing; none if somebody else has the lock."""
    while True:
        fd = open_lock(path, os.O_RDWR | os.O_CREAT)
        try:
            is_ours = try_flock(fd, path, fcntl.LOCK_EX)
            if is_ours and is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        if not is_ours:
            return None
        # It was removed between opening and locking: lock the new one.


def is_at(fd: int, path: Path) -> bool:
    """Whether the open file is still the one at this path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def _enter(path: Path, flags: int, patience_s: float) -> int:
    deadline = time.monotonic() + patience_s
    while True:
        fd = open_lock(path, flags)
        try:
            _wait(fd, path, deadline, patience_s)
            if is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # the file was removed meanwhile: the others use a new one


def _wait(fd: int, path: Path, deadline: float, patience_s: float) -> None:
    pause_s = SHORTEST_PAUSE_S
    while not try_flock(fd, path, fcntl.LOCK_EX):
        if time.monotonic() >= deadline:
            raise StoreError(
                f"Another process has held {path} for {patience_s:g} seconds. End it and try again.",
                str(path),
            )
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
