"""Atomic replacement of a file that several programs write, which keeps what was displaced.

The new file and the old one exchange names, so that we still have what we displaced: if it is not what
we had read, another program wrote without a lock, and its changes are merged in. Where the system cannot
exchange names, the last check is just before the replacement. Callers (`inbox`, `roster`) hold the locks.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from laneway.base.errors import FileDamaged
from laneway.base.foreign_files import open_regular
from laneway.store.files import FILE_MODE, TEMPORARY, trouble, write_all

Fingerprint = tuple[int, int, int, int]
"""Device, inode, time of the last change and size: enough to see that a file is the same."""
SWEEP_AFTER_S = 600.0
"""A half-written file of this age has no writer any more; a living writer needs a second at the most."""
MAX_READS = 4
"""Attempts to read a file that changes meanwhile, before we take what is there."""

AT_FDCWD = -100
RENAME_EXCHANGE = 2
RENAME_SWAP = 2
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}


class HeldFile:
    """The content of a file, held open: meanwhile no other file can get its inode."""

    def __init__(self, fd: int, data: bytes, status: os.stat_result) -> None:
        self._fd = fd
        self.data = data
        self.fingerprint = _fingerprint(status)
        self.mode = stat.S_IMODE(status.st_mode)

    def is_at(self, path: Path) -> bool:
        return fingerprint(path) == self.fingerprint

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)


def take(path: Path, max_bytes: int) -> HeldFile:
    """Open and read a file. `FileNotFoundError` if it does not exist; other errors are `StoreError`s."""
    try:
        fd = open_regular(path, follow_links=False)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise trouble(path, problem, "read") from problem
    try:
        return HeldFile(fd, *_read(fd, path, max_bytes))
    except OSError as problem:
        os.close(fd)
        raise trouble(path, problem, "read") from problem
    except BaseException:
        os.close(fd)
        raise


def _read(fd: int, path: Path, max_bytes: int) -> tuple[bytes, os.stat_result]:
    for attempt in range(MAX_READS):
        before = os.fstat(fd)
        if before.st_size > max_bytes:
            raise FileDamaged(f"{path} is larger than {max_bytes} bytes. Move it away.", str(path))
        data = os.pread(fd, before.st_size, 0)
        after = os.fstat(fd)
        if _fingerprint(before) == _fingerprint(after) or attempt == MAX_READS - 1:
            return data, after
    raise AssertionError("unreachable")


def fingerprint(path: Path) -> Fingerprint | None:
    """The fingerprint of a file; none if it does not exist."""
    try:
        return _fingerprint(os.lstat(path))
    except OSError:
        return None


def _fingerprint(status: os.stat_result) -> Fingerprint:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


# ── writing ────────────────────────────────────────────────────────────────


def prepare(path: Path, data: bytes, mode: int = FILE_MODE) -> Path:
    """Write the new content beside the old, safe on disk; the caller renames or removes it."""
    beside = path.with_name(f".{path.name}.{os.urandom(8).hex()}{TEMPORARY}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        try:
            if mode != FILE_MODE:
                os.fchmod(fd, mode)
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        discard(beside)
        raise
    return beside


def discard(path: Path) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # gone with its folder, or removed by the next sweep


def sweep(folder: Path, name: str = "") -> None:
    """Remove temporary files that killed writers left in a folder, of one file or of all."""
    for leftover in folder.glob(f".{name}*{TEMPORARY}"):
        try:
            if time.time() - leftover.lstat().st_mtime > SWEEP_AFTER_S:
                os.unlink(leftover)
        except OSError:
            pass  # its writer has just removed it


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; false if this system or this disk cannot."""
    call = _system_call()
    if call is None:
        return False
    number = call(os.fsencode(one), os.fsencode(other))
    if number in _CANNOT:
        return False
    if number:
        raise OSError(number, os.strerror(number), str(other))
    return True


@cache
def _system_call() -> Callable[[bytes, bytes], int] | None:
    """A function that returns an error number, or 0."""
    import ctypes  # only writers need it

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            rename = libc.renameat2
            rename.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

            def swap(one: bytes, other: bytes) -> int:
                failed = rename(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)
                return ctypes.get_errno() if failed else 0

            return swap
        rename = libc.renamex_np
        rename.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint]
        return lambda one, other: ctypes.get_errno() if rename(one, other, RENAME_SWAP) else 0
    except (OSError, AttributeError):
        return None
