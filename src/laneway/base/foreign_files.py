"""Opens and reads files that others may have written: regular files only, bounded, without blocking.

A repository, a shared folder or a damaged state folder may contain a pipe, a device, a socket, a
folder, a loop of links or gigabytes where a small file is expected. Only a regular file is opened,
without blocking; everything else is an `OSError` at once, so that code that handles a missing file
handles these, too.

    OSError
    ├── NotRegular   not a regular file (or a link, where none is followed)
    └── TooLarge     more bytes than the caller allows (max_bytes)
"""

from __future__ import annotations

import errno
import os
import stat

PRIVATE_MODE = 0o600
"""Of a new file: for its owner alone."""
CHUNK_BYTES = 64 * 1024
"""Read at a time from a file whose size is not known, as those of /proc."""

# O_NONBLOCK: a pipe without a writer, or a file under a lease, would block. O_NOCTTY: a terminal
# behind a link must not become our controlling terminal.
_ALWAYS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class NotRegular(OSError):
    """Not a regular file. The error number is the usual one of `open`."""


class TooLarge(OSError):
    def __init__(self, path: str, max_bytes: int) -> None:
        super().__init__(errno.EFBIG, f"larger than {max_bytes} bytes", path)
        self.max_bytes = max_bytes


def read_regular(path: str | os.PathLike[str], max_bytes: int, *, follow_links: bool = True) -> bytes:
    """All bytes of a regular file of at most `max_bytes`."""
    fd = open_regular(path, follow_links=follow_links)
    try:
        return read_open(fd, max_bytes, path)
    finally:
        os.close(fd)


def read_open(fd: int, max_bytes: int, path: str | os.PathLike[str]) -> bytes:
    """The same from a descriptor of `open_regular`, from its beginning on."""
    size = os.fstat(fd).st_size
    if size > max_bytes:
        raise TooLarge(os.fspath(path), max_bytes)
    data = os.read(fd, size + 1)
    while len(data) <= max_bytes:
        more = os.read(fd, CHUNK_BYTES)
        if not more:
            return data
        data += more
    raise TooLarge(os.fspath(path), max_bytes)


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY, *, follow_links: bool = True) -> int:
    """Open a regular file. With `os.O_CREAT` a missing one is made, private. Returns the descriptor."""
    name = os.fspath(path)
    # Checked first, because opening a device or a pipe can have side effects.
    status = _look(name, follow_links)
    if status is not None:
        _check(status, name)
    elif not flags & os.O_CREAT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    fd = os.open(name, flags | _ALWAYS | (0 if follow_links else os.O_NOFOLLOW), PRIVATE_MODE)
    try:
        _check(os.fstat(fd), name)  # it may have been replaced meanwhile
    except OSError:
        os.close(fd)
        raise
    return fd


def _look(name: str, follow_links: bool) -> os.stat_result | None:
    try:
        return os.stat(name) if follow_links else os.lstat(name)
    except FileNotFoundError:
        return None
    except ValueError as problem:  # a NUL, or characters that no file name can have
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name) from problem
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise NotRegular(errno.ELOOP, "a loop of links", name) from problem
        raise


def _check(status: os.stat_result, name: str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise NotRegular(errno.EISDIR, "a folder, not a file", name)
    if stat.S_ISLNK(status.st_mode):
        raise NotRegular(errno.ELOOP, "a link, not a file", name)
    raise NotRegular(errno.ENXIO, "not a regular file", name)
