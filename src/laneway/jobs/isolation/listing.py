"""All that lies in the upper folder of an overlay: new files, traces of deleted ones, replaced folders.

As the kernel keeps it (with `userxattr`): what was deleted is a character device 0:0; a folder that replaced
another one has the attribute `user.overlay.opaque`; what was renamed was copied and deleted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from laneway.base.errors import TreeRefused
from laneway.jobs.snapshots.beneath import FOLDER, Look, look_of
from laneway.jobs.snapshots.paths import GIT
from laneway.jobs.snapshots.scan import MAX_DEPTH

OPAQUE = b"user.overlay.opaque"
MAX_ENTRIES = 1_000_000
"""Of a layer. A job that installs all the world writes half as much."""


class LayerListing:
    """One layer, read when it is made."""

    def __init__(self, upper: int) -> None:
        self.files: dict[bytes, Look] = {}
        """All that is no folder."""
        self.folders: dict[bytes, int] = {}
        """Those that have something in them, or were made or changed themselves; and their modes."""
        self.gone: set[bytes] = set()
        """Of the tree below, files and folders that were deleted."""
        self.replaced: set[bytes] = set()
        """Folders of which nothing is seen any more that lay in them."""
        self.git: dict[bytes, list[bytes]] = {}
        """By the path of git's own folder or file, what was written or deleted there, relative to it."""
        self._entries = 0
        self._walk(upper, b"", 0)

    def hides(self, path: bytes) -> bool:
        """Whether what the tree below has at a path was deleted or replaced."""
        return (
            path in self.gone
            or path in self.files
            or path in self.folders
            or any(
                above in self.gone or above in self.files or above in self.replaced
                for above in folders_above(path)
            )
        )

    def _walk(self, fd: int, path: bytes, depth: int) -> None:
        for name, status in self._entries_of(fd):
            below = joined(path, name)
            if name == GIT:
                self.git[below] = list(self._names(fd, name, status, b"", depth + 1))
            elif is_whiteout(status):
                self.gone.add(below)
            elif not stat.S_ISDIR(status.st_mode):
                self.files[below] = look_of(status)
            else:
                inner = self._open(fd, name, status, depth + 1)
                try:
                    self.folders[below] = stat.S_IMODE(status.st_mode)
                    if _is_opaque(inner):
                        self.replaced.add(below)
                    self._walk(inner, below, depth + 1)
                finally:
                    os.close(inner)

    def _names(
        self, fd: int, name: bytes, status: os.stat_result, path: bytes, depth: int
    ) -> Iterator[bytes]:
        """Everything at and below one name, but for folders."""
        if not stat.S_ISDIR(status.st_mode):
            yield path
            return
        inner = self._open(fd, name, status, depth)
        try:
            for below, inner_status in self._entries_of(inner):
                yield from self._names(inner, below, inner_status, joined(path, below), depth + 1)
        finally:
            os.close(inner)

    def _entries_of(self, fd: int) -> list[tuple[bytes, os.stat_result]]:
        with os.scandir(fd) as entries:
            found = [(os.fsencode(entry.name), entry.stat(follow_symlinks=False)) for entry in entries]
        self._entries += len(found)
        if self._entries > MAX_ENTRIES:
            raise TreeRefused(f"The job has written more than {MAX_ENTRIES:,} files: they cannot be merged.")
        return sorted(found)

    def _open(self, fd: int, name: bytes, status: os.stat_result, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise TreeRefused(f"The job has made more than {MAX_DEPTH} folders within each other.")
        if status.st_mode & 0o500 != 0o500:
            os.chmod(name, status.st_mode & 0o7777 | 0o700, dir_fd=fd)  # its worker is gone, and it is ours
        return os.open(name, FOLDER, dir_fd=fd)


def is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def folders_above(path: bytes) -> list[bytes]:
    """The folders that a path is in, the topmost first, without the tree itself."""
    parts = path.split(b"/")
    return [b"/".join(parts[:place]) for place in range(1, len(parts))]


def joined(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def _is_opaque(fd: int) -> bool:
    try:
        return os.getxattr(fd, OPAQUE) == b"y"
    except OSError:
        return False
