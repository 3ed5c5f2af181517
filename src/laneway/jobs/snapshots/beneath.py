"""Opens files and folders below a work tree without following any link, whoever swaps what meanwhile.

Every step is relative to a folder that is open, so a folder that is replaced by a link leads nowhere:
opening it fails. What is no regular file is never opened: a pipe would block, a device may do things.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from laneway.base.foreign_files import NotRegular, TooLarge

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NO_WAY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""A folder on the way is missing, is a file, or is a link."""
CHUNK_BYTES = 1024 * 1024

Look = tuple[int, int, int, int, int]
"""Mode, size, time of the content, time of the last change, inode: if all are the same, so is the file."""


def look_of(status: os.stat_result) -> Look:
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def open_root(path: str | os.PathLike[str]) -> int:
    """The work tree itself: its path is the user's, and may have links in it."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def opened(root: int, parts: Sequence[bytes]) -> Iterator[int]:
    """The descriptor of a folder below the root. An `OSError` if any part is a link or no folder."""
    fd = os.dup(root)
    try:
        for part in parts:
            below = os.open(part, FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def open_file(folder: int, name: bytes) -> int:
    """A regular file, for reading."""
    _check(os.stat(name, dir_fd=folder, follow_symlinks=False), name)
    fd = os.open(name, _FILE, dir_fd=folder)
    try:
        _check(os.fstat(fd), name)  # it may have been replaced meanwhile
    except OSError:
        os.close(fd)
        raise
    return fd


def read_all(fd: int, max_bytes: int) -> bytes:
    """The whole of an open file, which may be growing: `TooLarge` past the limit."""
    data = os.read(fd, min(os.fstat(fd).st_size, max_bytes) + 1)
    if not data:
        return data
    pieces, size = [data], len(data)
    while piece := os.read(fd, CHUNK_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            raise TooLarge("", max_bytes)
    if size > max_bytes:
        raise TooLarge("", max_bytes)
    return b"".join(pieces)


def _check(status: os.stat_result, name: bytes) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular(errno.ENXIO, "not a regular file", os.fsdecode(name))
