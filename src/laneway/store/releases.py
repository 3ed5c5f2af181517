"""Releases of Codex threads that have begun and are not confirmed: one small file for each.

To give a thread up, Codex archives and unarchives it; whoever is killed in between leaves it archived. So a
file is written before, and removed when Codex has confirmed the unarchive. It is locked by the process that
releases: the kernel frees the lock when that process ends, and what is unlocked is a leftover for anybody to
finish. A file names the Codex home that it is about: a process sees those of its own home only.

Files and not the SQLite database: two calls of the system in the place of two transactions, no import of
`sqlite3` where nothing else needs it, and a lock that ends with its process. Everything blocks: from asyncio
call through `asyncio.to_thread`.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from laneway.base.ids import new_id
from laneway.base.paths import state_home
from laneway.store.files import FILE_MODE, make_folder, trouble, write_all

MAX_RELEASE_BYTES = 16 * 1024
"""Of one file: a thread, a time and a path, which the system bounds at 4 KB."""
MAX_LEFTOVERS = 100
"""That are finished at once. Each was a kill in an instant of a second: there are never more than a few."""
HALF_WRITTEN_S = 60.0
"""After which a file that says nothing was left by a process that was killed as it wrote it."""


class _Noted(msgspec.Struct, rename="camel"):
    thread_id: str
    codex_home: str
    began_at: float
    """Seconds since 1970."""
    pid: int = 0
    """For people; whether its process lives is told by the lock."""


class ReleaseFile:
    """A release that is ours: as the process that releases, or to finish what another one began."""

    def __init__(self, path: Path, fd: int, thread_id: str, began_at: float) -> None:
        self.thread_id = thread_id
        self.began_at = began_at
        self._path = path
        self._fd = fd

    def remove(self) -> None:
        """The thread is not archived by us any more."""
        _unlink(self._path)
        self.leave()

    def leave(self) -> None:
        """Whoever comes next finishes it. Twice is harmless."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


class ReleaseFiles:
    """The unconfirmed releases in one Codex home."""

    def __init__(self, folder: Path, codex_home: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._home = os.path.realpath(codex_home)
        self._now = now

    def begin(self, thread_id: str) -> ReleaseFile:
        """On the disk when this returns; `StoreError` if it cannot be."""
        path = self._folder / f"{new_id('release')}.json"
        noted = _Noted(thread_id, self._home, self._now(), os.getpid())
        make_folder(self._folder)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)  # whoever looks at it now finds it empty and lets go at once
                write_all(fd, msgspec.json.encode(noted) + b"\n")
                os.fsync(fd)  # the name goes along, where file systems keep a journal
            except BaseException:
                os.close(fd)
                _unlink(path)
                raise
        except OSError as problem:
            raise trouble(path, problem) from problem
        return ReleaseFile(path, fd, thread_id, noted.began_at)

    def leftovers(self) -> list[ReleaseFile]:
        """Those that no process works on any more. They are ours now: end each by `remove` or `leave`."""
        found: list[ReleaseFile] = []
        for path in self._paths():
            if len(found) == MAX_LEFTOVERS:
                break
            fd = _open(path)
            if fd is None:
                continue
            mine = self._claimed(path, fd)
            if mine is None:
                os.close(fd)
            else:
                found.append(mine)
        return found

    def is_under_way(self, thread_id: str) -> bool:
        """Whether a living process gives this thread up right now, or finishes that."""
        for path in self._paths():
            fd = _open(path)
            if fd is None:
                continue
            try:
                noted = _read(fd)
                if noted is None or (noted.thread_id, noted.codex_home) != (thread_id, self._home):
                    continue
                if not _is_free(fd):
                    return True
            finally:
                os.close(fd)
        return False

    def _paths(self) -> Iterator[Path]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise trouble(self._folder, problem, "read") from problem
        yield from (self._folder / name for name in sorted(names) if name.endswith(".json"))

    def _claimed(self, path: Path, fd: int) -> ReleaseFile | None:
        noted = _read(fd)
        if noted is not None and noted.codex_home != self._home and os.path.isdir(noted.codex_home):
            return None
        if not _is_free(fd) or os.fstat(fd).st_nlink == 0:
            return None
        if noted is None:
            if self._now() - os.fstat(fd).st_mtime > HALF_WRITTEN_S:
                _unlink(path)
            return None
        if noted.codex_home != self._home:
            _unlink(path)  # its home is gone, as those of rehearsals and tests are
            return None
        return ReleaseFile(path, fd, noted.thread_id, noted.began_at)


def releases_folder(root: Path | None = None) -> Path:
    """`$XDG_STATE_HOME/laneway/releases`, or below another root."""
    return (root or state_home()) / "releases"


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # it was removed in between, or is not ours to open


def _unlink(path: Path) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # gone already; else whoever comes next finds nothing to do for it


def _is_free(fd: int) -> bool:
    """Whether nobody holds it; then we do, until the descriptor is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(fd: int) -> _Noted | None:
    try:
        return msgspec.json.decode(os.pread(fd, MAX_RELEASE_BYTES, 0), type=_Noted)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
