"""Slots and job locks: locked files that say how many jobs run, and which.

The dispatcher locks a slot (one of the total and one of the job's mode) and the job's own file, and hands
all three on as open descriptors to the job's supervisor, and that to its guardian. The kernel frees them
when both are gone, however that happens: no lease, no clock, nobody who has to tidy up. Blocking.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laneway.base.errors import StoreError
from laneway.jobs.model import JobLimits, Mode
from laneway.store.files import make_folder, trouble
from laneway.store.gates import open_lock, take_lock, try_flock


class Slots:
    """The slot files of one user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, mode: Mode, limits: JobLimits) -> tuple[int, ...]:
        """The descriptors of a free slot of each kind; empty if there is none."""
        total = self._first_free("total", limits.total)
        if total is None:
            return ()
        own = self._first_free(mode, limits.of(mode))
        if own is None:
            os.close(total)
            return ()
        return total, own

    def taken(self, limits: JobLimits) -> dict[str, int]:
        """How many slots of each kind are held. Only under the dispatcher's gate: looking is locking, too."""
        counts = {"total": limits.total, "read": limits.read, "write": limits.write}
        return {kind: sum(self._is_held(kind, n) for n in range(count)) for kind, count in counts.items()}

    def _first_free(self, kind: str, count: int) -> int | None:
        make_folder(self._folder)
        for number in range(count):
            fd = take_lock(self._path(kind, number))
            if fd is not None:
                return fd
        return None

    def _is_held(self, kind: str, number: int) -> bool:
        return is_held(self._path(kind, number))

    def _path(self, kind: str, number: int) -> Path:
        return self._folder / f"{kind}-{number}"


def is_held(path: Path) -> bool:
    """Whether another process, or another descriptor of this one, has the lock."""
    try:
        fd = open_lock(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except (StoreError, OSError) as problem:
        if isinstance(problem, StoreError):
            raise
        raise trouble(path, problem, "read") from problem
    try:
        return not try_flock(fd, path, fcntl.LOCK_SH)
    finally:
        os.close(fd)


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold a lock for the block, if it is free; says whether it is."""
    fd = take_lock(path)
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)
