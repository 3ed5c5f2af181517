"""Removes a job's work folder, whatever a worker or the kernel left in it: folders without rights, devices.

Never leaves the folder: no link is followed, and every step is relative to an open folder.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from laneway.jobs.snapshots.beneath import FOLDER
from laneway.store.files import trouble

MAX_DEPTH = 100
"""Folders within each other: each is an open descriptor, and macOS allows 256. Deeper ones are moved up."""


def remove(folder: Path) -> None:
    """Nothing lies at this path afterwards. `StoreError` if that cannot be done."""
    try:
        parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as problem:
        raise trouble(folder, problem) from problem
    try:
        _Removal(parent).run(os.fsencode(folder.name))
    except OSError as problem:
        raise trouble(folder, problem) from problem
    finally:
        os.close(parent)


class _Removal:
    def __init__(self, top: int) -> None:
        self._top = top
        self._left: list[bytes] = []

    def run(self, name: bytes) -> None:
        self._left = [name]
        while self._left:
            self._remove(self._top, self._left.pop(), 0)

    def _remove(self, parent: int, name: bytes, depth: int) -> None:
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=parent)
            return
        if status.st_mode & 0o700 != 0o700:
            os.chmod(name, 0o700, dir_fd=parent)  # nobody else writes here, who could swap it for a link
        if depth > MAX_DEPTH:
            flat = b".laneway-deep-" + os.urandom(8).hex().encode()
            os.rename(name, flat, src_dir_fd=parent, dst_dir_fd=self._top)
            self._left.append(flat)
            return
        fd = os.open(name, FOLDER, dir_fd=parent)
        try:
            for below in os.listdir(fd):
                self._remove(fd, os.fsencode(below), depth + 1)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=parent)
