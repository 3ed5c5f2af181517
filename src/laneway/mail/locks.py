"""Locks of a mail file: takes the three locks that Laneway, Claude Code and ATM use for one file.

    <name>.lock        flock               ATM 0.46; all of ours. The file stays.
    <name>.json.lock   a folder            Claude Code (proper-lockfile): stale after 10 s by its time.
    <name>.json.lock   a file with a flock ATM 1.x. It and Claude's folder exclude each other by name.

Always taken in that order, so that two Laneways never deadlock. Claude Code gives up after 0.65 s and
drops its message: nobody may hold the locks for longer than a few milliseconds, and only the exchange
of two file names happens inside. Blocking: from asyncio call through `asyncio.to_thread`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import MailBusy
from laneway.base.foreign_files import open_regular
from laneway.store.files import FOLDER_MODE, trouble

SHORTEST_WAIT_S = 0.002
LONGEST_WAIT_S = 0.05
"""Between two attempts. Each wait is random and up to twice the last one, so that no two keep in step."""
MAX_NOTE_BYTES = 128


class Patience(msgspec.Struct, frozen=True):
    """How long to wait for locks, and from what age on one is stale."""

    budget_s: float = 5.0
    """For all locks together. ATM 1.x waits as long; the others hold theirs for milliseconds."""
    stale_s: float = 10.0
    """A lock folder of this age was left behind: Claude Code's own rule, by which it also removes ours."""


class _Wait:
    def __init__(self, target: Path, patience: Patience) -> None:
        self._target = target
        self._patience = patience
        self._until = time.monotonic() + patience.budget_s
        self._pause_s = SHORTEST_WAIT_S

    def once(self, *, briefly: bool = False) -> None:
        """Pause before the next attempt, unless `briefly`; `MailBusy` if the time is up."""
        if time.monotonic() >= self._until:
            raise MailBusy(str(self._target), self._patience.budget_s)
        if briefly:
            return
        time.sleep(random.uniform(SHORTEST_WAIT_S / 2, self._pause_s))
        self._pause_s = min(2 * self._pause_s, LONGEST_WAIT_S)


@contextmanager
def locked(
    target: Path, patience: Patience, *, on_release: Callable[[float], None] | None = None
) -> Iterator[None]:
    """Hold all locks of the file. `FileNotFoundError` if its folder does not exist.

    `on_release` is given the seconds that they were held.
    """
    wait = _Wait(target, patience)
    fd = _take_flock(target.with_suffix(".lock"), wait)
    try:
        folder = target.with_name(target.name + ".lock")
        folder_status = _take_folder(folder, fd, patience, wait)
        since = time.monotonic()
        try:
            yield
        finally:
            _release_folder(folder, folder_status, fd)
            if on_release is not None:
                on_release(time.monotonic() - since)
    finally:
        os.close(fd)


def _take_flock(path: Path, wait: _Wait) -> int:
    while True:
        try:
            fd = open_regular(path, os.O_RDWR | os.O_CREAT, follow_links=False)
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise trouble(path, problem) from problem
        try:
            if _flock(fd, path) and _is_at(os.fstat(fd), path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        wait.once()


def _take_folder(path: Path, note_fd: int, patience: Patience, wait: _Wait) -> os.stat_result:
    while True:
        try:
            os.mkdir(path, FOLDER_MODE)
            folder_status = os.lstat(path)
            _note(note_fd, folder_status)
            return folder_status
        except FileExistsError:
            pass
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise trouble(path, problem) from problem
        wait.once(briefly=_evict(path, note_fd, patience))


def _release_folder(path: Path, folder_status: os.stat_result, note_fd: int) -> None:
    """Remove the lock folder, unless it is no longer ours: another took it while we were suspended."""
    try:
        os.ftruncate(note_fd, 0)  # first the note: it must never describe another's folder
        if _is_at(folder_status, path):
            os.rmdir(path)
    except OSError:
        pass  # gone with its team, or stale in ten seconds


# ── stale locks ────────────────────────────────────────────────────────────


def _evict(path: Path, note_fd: int, patience: Patience) -> bool:
    """Remove a stale lock; whether to try again at once: it was removed, or had gone already."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    if stat.S_ISDIR(status.st_mode):
        is_stale = _left_by_us(note_fd, status) or time.time() - status.st_mtime > patience.stale_s
        return is_stale and _remove_folder(path, status)
    if stat.S_ISREG(status.st_mode):
        return _remove_file(path)
    raise trouble(path, OSError(errno.ENOTDIR, ""))


def _remove_folder(path: Path, status: os.stat_result) -> bool:
    try:
        if _is_at(status, path):  # checked again: another may hold a new one by now
            os.rmdir(path)
    except OSError:
        return False
    return True


def _remove_file(path: Path) -> bool:
    """ATM 1.x holds a flock while it works. The pid in the file does not matter: a file without is stale."""
    try:
        fd = open_regular(path, os.O_RDWR, follow_links=False)
    except OSError:
        return False
    try:
        if not _flock(fd, path):
            return False
        if _is_at(os.fstat(fd), path):
            os.unlink(path)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


# The flock's file notes the folder that its holder made. If we have the flock and find that folder, its
# maker is dead: alive, it would still hold the flock. So after a kill -9 no Laneway waits ten seconds.


def _note(fd: int, folder_status: os.stat_result) -> None:
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, _note_text(folder_status), 0)
    except OSError:
        pass  # a full disk: the folder is stale in ten seconds


def _left_by_us(fd: int, folder: os.stat_result) -> bool:
    try:
        return os.pread(fd, MAX_NOTE_BYTES, 0) == _note_text(folder)
    except OSError:
        return False


def _note_text(folder: os.stat_result) -> bytes:
    return f"laneway {folder.st_dev} {folder.st_ino} {folder.st_mtime_ns}\n".encode()


def _is_at(known: os.stat_result, path: Path) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(known, status) and (
        not stat.S_ISDIR(status.st_mode) or known.st_mtime_ns == status.st_mtime_ns
    )


def _flock(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        raise trouble(path, problem) from problem  # some network file systems cannot lock
    return True
