"""Atomic file writes and bounded reads: private files, replaced in one step.

A crash at any instant leaves the old content or the new one. Every system error becomes a
`StoreError` with a sentence for people. Blocking: from asyncio call through `asyncio.to_thread`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from laneway.base.errors import FileDamaged, StoreError
from laneway.base.foreign_files import NotRegular, TooLarge, read_regular
from laneway.store.stamps import file_stamp

T = TypeVar("T")
FILE_MODE = 0o600
FOLDER_MODE = 0o700
TEMPORARY = ".laneway-tmp"
"""Suffix of half-written files: unmistakable, so that a leftover may be removed."""
MAX_ASIDE = 1000
"""Files moved aside under one time stamp; with more, something is wrong with the machine, not with a file."""

NO_SPACE = (
    "The disk is full: there is no space left to write {}. "
    "Free some and try again; what was saved before is whole."
)
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_ALLOWED = {errno.EROFS, errno.EACCES, errno.EPERM}
_WRONG_KIND = {errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO}


def trouble(path: Path, problem: OSError, doing: str = "write") -> StoreError:
    """A system error as a `StoreError`. `doing` is `write` or `read`."""
    number = problem.errno or 0
    if number in _NO_SPACE:
        text = NO_SPACE.format(path)
    elif number in _NOT_ALLOWED:
        why = "the file system is read-only" if number == errno.EROFS else "permission denied"
        text = f"Laneway cannot {doing} {path}: {why}. Check the owner and the permissions of its folder."
    elif number in _WRONG_KIND:
        text = f"Laneway cannot {doing} {path}: something of another kind lies there. Move it away."
    else:
        text = f"Laneway could not {doing} {path} ({errno.errorcode.get(number, number)}). Check the disk."
    return StoreError(text, str(path))


def make_folder(folder: Path) -> None:
    """Make the folder and its missing parents, private. Existing ones keep their permissions."""
    try:
        missing = []
        for parent in (folder, *folder.parents):
            if parent.exists():
                break
            missing.append(parent)
        for parent in reversed(missing):
            try:
                os.mkdir(parent, FOLDER_MODE)
            except FileExistsError:
                pass  # another process made it first
            else:
                sync_folder(parent.parent)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "")
    except OSError as problem:
        raise trouble(folder, problem) from problem


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file atomically, and return when it is on disk."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}{TEMPORARY}")
    try:
        fd = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE
        )
        try:
            try:
                write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(temporary, path)
        except BaseException:
            _remove(temporary)
            raise
        sync_folder(path.parent)
    except OSError as problem:
        raise trouble(path, problem) from problem


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that a new file name survives a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_whole(path: Path, max_bytes: int) -> bytes | None:
    """The content, or `None` if there is no file. `FileDamaged` if it is too large or no regular file."""
    try:
        return read_regular(path, max_bytes)
    except FileNotFoundError:
        return None
    except NotRegular as problem:
        raise FileDamaged(f"{path} is not a file. Move it away.", str(path)) from problem
    except TooLarge as problem:
        text = f"{path} is larger than {max_bytes} bytes; Laneway did not write that."
        raise FileDamaged(text, str(path)) from problem
    except OSError as problem:
        raise trouble(path, problem, "read") from problem


def decoded(path: Path, data: bytes, decode: Callable[[bytes], T]) -> T:
    """The value of a file of ours; `FileDamaged` if somebody else has written in it."""
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        text = f"{path} is damaged: Laneway did not write what is in it. Move it away."
        raise FileDamaged(text, str(path)) from problem


def keep_aside(path: Path, why: str, when: datetime) -> Path:
    """Rename to `<name>.<why>-<time>` without overwriting anything. Returns the new path."""
    try:
        for number in range(1, MAX_ASIDE):
            again = f"-{number}" if number > 1 else ""
            aside = path.with_name(f"{path.name}.{why}-{file_stamp(when)}{again}")
            if not os.path.lexists(aside):  # no race: the caller holds the lock of this folder
                os.rename(path, aside)
                sync_folder(path.parent)
                return aside
    except OSError as problem:
        raise trouble(path, problem) from problem
    raise StoreError(f"{path} cannot be kept aside: there are {MAX_ASIDE} others. Remove some.", str(path))


def sweep(folder: Path) -> None:
    """Remove half-written files of killed writers. Only for the one writer of this folder."""
    for leftover in (*folder.glob(f".*{TEMPORARY}"), *folder.glob(f"*/.*{TEMPORARY}")):
        _remove(leftover)


def _remove(path: Path) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # gone already, or removed by the next sweep
