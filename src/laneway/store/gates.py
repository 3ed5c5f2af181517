"""Short locks: behind a gate is one thread of one process at a time, for microseconds of work.

A gate is a `flock` on a small file, and it is not waited for without end: a process that was stopped
inside (by a debugger, or by Ctrl-Z) must not freeze all the others. A gate whose file was removed
while somebody waited for it is a new one for everybody. Blocking: from asyncio call through
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
"""To wait at a gate. Behind it others need microseconds; whoever needs longer does not run."""
SHORTEST_PAUSE_S = 0.0002
LONGEST_PAUSE_S = 0.01
"""Between two tries; the kernel has no lock that is waited for with a limit."""


@contextmanager
def gate(path: Path, *, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Be alone until the end of the block. The file is made where it is missing, its folder is not."""
    fd = _enter(path, os.O_RDWR | os.O_CREAT, patience_s)
    try:
        yield
    finally:
        os.close(fd)


@contextmanager
def readers_gate(path: Path, *, patience_s: float = PATIENCE_S) -> Iterator[bool]:
    """The same without making anything; false where there is no gate, and then nobody is kept out."""
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
    """A lock file: never a link, never anything that could be waited for."""
    try:
        return open_regular(path, flags, follow_links=False)
    except (FileNotFoundError, NotADirectoryError):
        if flags & os.O_CREAT:
            raise StoreError(f"The folder {path.parent} is gone.", str(path)) from None
        raise
    except OSError as problem:
        raise trouble(path, problem) from problem


def try_flock(fd: int, path: Path, kind: int) -> bool:
    """Lock it now; false if somebody else has it."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        raise trouble(path, problem) from problem  # some network file systems cannot lock
    return True


def is_at(fd: int, path: Path) -> bool:
    """Whether what we have open is still what the name stands for."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def _enter(path: Path, flags: int, patience_s: float) -> int:
    until = time.monotonic() + patience_s
    while True:
        fd = open_lock(path, flags)
        try:
            _wait(fd, path, until, patience_s)
            if is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # its file was removed meanwhile: the others meet at another one


def _wait(fd: int, path: Path, until: float, patience_s: float) -> None:
    pause_s = SHORTEST_PAUSE_S
    while not try_flock(fd, path, fcntl.LOCK_EX):
        if time.monotonic() >= until:
            raise StoreError(
                f"Another process has held {path} for {patience_s:g} seconds. End it and try again.",
                str(path),
            )
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
