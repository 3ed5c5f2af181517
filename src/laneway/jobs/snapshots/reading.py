"""Reads one file, link or other thing for a snapshot, and judges whether it may change unnoticed.

A file is known by its look: mode, size, times, inode. The time of the last change is the system's own
and only goes on, but it goes on in ticks: after an edit within the tick of the previous one a file looks
the same. So a file that was read within a tick of its last change is not settled, and is read again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable

import msgspec

from laneway.base.foreign_files import NotRegular, TooLarge
from laneway.jobs.snapshots.beneath import CHUNK_BYTES, Look, look_of, open_file, read_all

MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Of a file whose content is kept. Of a larger one a fingerprint has to do: it cannot be given back."""
MAX_HASHED_BYTES = 256 * 1024 * 1024
"""Of a file whose fingerprint is made of its content: half a second. Past it, its look has to do."""
TICK_NS = 100_000_000
"""Ten times the coarsest tick of a kernel that counts fractions of a second."""
COARSE_TICK_NS = 2_100_000_000
"""Where only whole seconds are kept, or every other one."""
ATTEMPTS = 3
"""To read a file that is being written."""
LARGE = "large "
LOOK = "look:"
HASHED = "sha256:"
"""Begin a fingerprint that is not made of the content, and one that is."""
UNREADABLE = "unreadable"
_OTHERS = {
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


class Taken(msgspec.Struct, frozen=True):
    """What was read, and the look that it had while it was read."""

    look: Look
    blob: bytes = b""
    odd: str = ""
    is_settled: bool = True


Store = Callable[[bytes], bytes]
"""Keeps a content, and returns its id."""


def take(folder: int, name: bytes, look: Look, store: Store) -> Taken | None:
    """What lies at a name in an open folder; none if it has gone since it was listed."""
    kind = stat.S_IFMT(look[0])
    try:
        if kind == stat.S_IFLNK:
            blob = store(os.readlink(name, dir_fd=folder))
            return Taken(look, blob, is_settled=is_settled(look, time.time_ns()))
        if kind == stat.S_IFREG:
            return _take_file(folder, name, store)
    except (FileNotFoundError, NotADirectoryError, NotRegular):
        return None  # removed or replaced meanwhile: the next snapshot sees what is there then
    except OSError:
        return Taken(look, odd=UNREADABLE)
    return Taken(look, odd=special(kind))


def special(mode: int) -> str:
    """What is neither file, link nor folder."""
    return _OTHERS.get(stat.S_IFMT(mode), "unknown")


def is_settled(look: Look, read_ns: int) -> bool:
    """Whether a change after it was read would show."""
    return look[3] < read_ns - tick_of(look[3])


def tick_of(changed_ns: int) -> int:
    """How much later than this the change may have been: the time is of a clock that goes in ticks."""
    return TICK_NS if changed_ns % 1_000_000_000 else COARSE_TICK_NS


def _take_file(folder: int, name: bytes, store: Store) -> Taken:
    look: Look = (0, 0, 0, 0, 0)
    content: bytes | str = b""
    for _ in range(ATTEMPTS):
        fd = open_file(folder, name)
        try:
            before = look_of(os.fstat(fd))
            content = _content(fd, before)
            look = look_of(os.fstat(fd))
            read_ns = time.time_ns()
        finally:
            os.close(fd)
        if look == before:
            break
    else:
        read_ns = 0  # it was being written all the time: never settled
    settled = is_settled(look, read_ns)
    if isinstance(content, str):
        return Taken(look, odd=LARGE + content, is_settled=settled)
    return Taken(look, store(content), is_settled=settled)


def _content(fd: int, look: Look) -> bytes | str:
    """The content of a file, or the fingerprint of a large one."""
    try:
        if look[1] <= MAX_KEPT_BYTES:
            return read_all(fd, MAX_KEPT_BYTES)
    except TooLarge:
        os.lseek(fd, 0, os.SEEK_SET)  # it is growing
    return fingerprint(fd, look)


def fingerprint(fd: int, look: Look) -> str:
    if look[1] > MAX_HASHED_BYTES:
        return f"{LOOK}{look[1]}:{look[2]}:{look[4]}"
    digest = hashlib.sha256()
    while piece := os.read(fd, CHUNK_BYTES):
        digest.update(piece)
    return f"{HASHED}{digest.hexdigest()}"
