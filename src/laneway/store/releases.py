"""Journal of unfinished releases of Codex threads: one small file for each.

To release a thread, Codex archives and unarchives it; a process that is killed in between leaves it archived.
So a file is written before, and removed when Codex has confirmed the unarchive. The releasing process locks
it: the kernel frees the lock when that process ends, and an unlocked file is a leftover that any process may
finish. A file names its Codex home: a process sees only those of its own home.

Files instead of the SQLite database: two system calls instead of two transactions, no import of `sqlite3`
where nothing else needs it, and a lock that ends with its process. Everything blocks: from asyncio call
through `asyncio.to_thread`.
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
"""Of one file: a thread, a time and a path, which the system limits to 4 KB."""
MAX_LEFTOVERS = 100
"""To finish at once. Each needs a kill within a fraction of a second: there are never more than a few."""
HALF_WRITTEN_S = 60.0
"""Age after which an unreadable file was left by a process that was killed while it wrote."""


class _Note(msgspec.Struct, rename="camel"):
    thread_id: str
    codex_home: str
    began_at: float
    """Seconds since 1970."""
    pid: int = 0
    """For people; the lock shows whether its process lives."""


_decode_note = msgspec.json.Decoder(_Note).decode


class ReleaseFile:
    """A release that this process works on: its own, or one that another process left unfinished."""

    def __init__(self, path: Path, fd: int, thread_id: str, began_at: float) -> None:
        self.thread_id = thread_id
        self.began_at = began_at
        self._path = path
        self._fd = fd

    def remove(self) -> None:
        """The release is finished."""
        _unlink(self._path)
        self.leave()

    def leave(self) -> None:
        """Leave it for another process to finish. Safe to call twice."""
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
        """Write the file of a new release; on disk when this returns, else `StoreError`."""
        path = self._folder / f"{new_id('release')}.json"
        note = _Note(thread_id, self._home, self._now(), os.getpid())
        make_folder(self._folder)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)  # another process that has it open sees it empty and closes it
                write_all(fd, msgspec.json.encode(note) + b"\n")
                os.fsync(fd)  # on file systems with a journal this includes the file's name
            except BaseException:
                os.close(fd)
                _unlink(path)
                raise
        except OSError as problem:
            raise trouble(path, problem) from problem
        return ReleaseFile(path, fd, thread_id, note.began_at)

    def leftovers(self) -> list[ReleaseFile]:
        """Releases that no process works on any more. Locked for us: end each by `remove` or `leave`."""
        leftovers: list[ReleaseFile] = []
        for path in self._paths():
            if len(leftovers) == MAX_LEFTOVERS:
                break
            fd = _open(path)
            if fd is None:
                continue
            release = self._claimed(path, fd)
            if release is None:
                os.close(fd)
            else:
                leftovers.append(release)
        return leftovers

    def is_under_way(self, thread_id: str) -> bool:
        """Whether a running process is releasing this thread right now."""
        for path in self._paths():
            fd = _open(path)
            if fd is None:
                continue
            try:
                note = _read(fd)
                if note is None or (note.thread_id, note.codex_home) != (thread_id, self._home):
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
        note = _read(fd)
        if note is not None and note.codex_home != self._home and os.path.isdir(note.codex_home):
            return None
        if not _is_free(fd) or os.fstat(fd).st_nlink == 0:
            return None
        if note is None:
            if self._now() - os.fstat(fd).st_mtime > HALF_WRITTEN_S:
                _unlink(path)
            return None
        if note.codex_home != self._home:
            _unlink(path)  # its Codex home is gone, as those of rehearsals and tests are
            return None
        return ReleaseFile(path, fd, note.thread_id, note.began_at)


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
        pass  # gone already; else the next process finds nothing to do for it


def _is_free(fd: int) -> bool:
    """Whether nobody held the lock; then we hold it until the descriptor is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(fd: int) -> _Note | None:
    try:
        return _decode_note(os.pread(fd, MAX_RELEASE_BYTES, 0))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
