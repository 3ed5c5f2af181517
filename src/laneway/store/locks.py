"""Identity locks: one lock per identity, held until its process releases it or ends.

The `flock` decides: the kernel frees it when the process ends, however that happens. The pid, agent
and time inside the file are information for people (and for the original atm-agent-mcp, which reads
them). Lock files stay; only their text is removed with the claim.

    <identity>.lock   locked by all versions; other processes look at this file
    <identity>/       the folder itself is locked, too, in case somebody removes lock files

A holder whose file or folder was removed locks it again before its next write. If another process
was faster, or has written meanwhile, the claim is lost and the holder writes nothing more.

To look at a lock means to try it for an instant, which could be mistaken for holding it. So looking
and claiming both happen under a gate, a second lock that is held only for that.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import ClaimLost, IdentityHeld, StoreError
from laneway.store.files import make_folder, trouble, write_all
from laneway.store.gates import gate, is_at, open_lock, readers_gate, take_lock, try_flock

log = logging.getLogger(__name__)

MAX_NOTE_BYTES = 4096
"""More than a holder writes about itself; a larger file is not ours."""
NOT_LOCKED = -1
"""Instead of a descriptor: released, or a folder on a file system that cannot lock folders."""


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock, as it describes itself; `None` for what it does not say."""

    pid: int | None = None
    agent_id: str | None = None
    started_at: str | None = None


_decode_holder = msgspec.json.Decoder(Holder).decode


class LockedPaths(msgspec.Struct, frozen=True):
    """The lock file and the folder of one identity."""

    file: Path
    home: Path


class Lock:
    """A held lock. `Locks.take` makes one. Threads may share it."""

    def __init__(self, file_fd: int, home_fd: int, paths: LockedPaths, gate_path: Path) -> None:
        self._file_fd = file_fd
        self._home_fd = home_fd
        self._paths = paths
        self._gate_path = gate_path
        self._holder = Holder()
        self._mutex = threading.Lock()
        self._is_lost = False
        self._times_retaken = 0

    def check(self) -> int:
        """Check that we hold the lock, else raise `ClaimLost`. Cheap: called before every write.

        Returns how often it was locked again. If that has grown, another process may have written meanwhile.
        """
        with self._mutex:
            self._check_held()
            if not self._is_in_place():
                self._take_again()
            return self._times_retaken

    def note(self, holder: Holder) -> None:
        """Write into the lock file who holds it."""
        self.check()
        with self._mutex:
            self._check_held()
            self._write_note(holder)

    def _check_held(self) -> None:
        if self._file_fd == NOT_LOCKED:
            raise ClaimLost(
                f"{self._paths.file} was given up. Claim the identity again.", str(self._paths.file)
            )
        if self._is_lost:
            raise _lost(self._paths.file)

    def _is_in_place(self) -> bool:
        is_home_ours = self._home_fd == NOT_LOCKED or is_at(self._home_fd, self._paths.home)
        return is_home_ours and is_at(self._file_fd, self._paths.file)

    def _take_again(self) -> None:
        """Lock what was removed and made again. What we still hold stays locked all the time."""
        make_folder(self._paths.home)
        with gate(self._gate_path):
            if not is_at(self._file_fd, self._paths.file):
                self._file_fd = self._replaced(self._file_fd, take_lock(self._paths.file))
            if self._home_fd != NOT_LOCKED and not is_at(self._home_fd, self._paths.home):
                self._home_fd = self._replaced(self._home_fd, _lock_home(self._paths.home))
            self._write_note(self._holder)
        self._times_retaken += 1
        log.warning("%s or the folder beside it was removed; it is there again.", self._paths.file)

    def _replaced(self, old_fd: int, new_fd: int | None) -> int:
        if new_fd is None:
            self._is_lost = True
            raise _lost(self._paths.file)
        os.close(old_fd)
        return new_fd

    def _write_note(self, holder: Holder) -> None:
        self._holder = holder
        try:
            os.lseek(self._file_fd, 0, os.SEEK_SET)
            os.ftruncate(self._file_fd, 0)
            write_all(self._file_fd, msgspec.json.encode(holder) + b"\n")
        except OSError as problem:
            raise trouble(self._paths.file, problem) from problem

    def release(self) -> None:
        """Safe to call twice."""
        with self._mutex:
            fds = self._file_fd, self._home_fd
            self._file_fd = self._home_fd = NOT_LOCKED
        if fds[0] == NOT_LOCKED:
            return
        try:
            # Under the gate, so that nobody sees a held lock without its holder's name.
            with gate(self._gate_path):
                os.ftruncate(fds[0], 0)
        except (StoreError, OSError):
            pass  # the folder is gone or the disk full: the name stays, but the lock is free
        finally:
            for fd in fds:
                if fd != NOT_LOCKED:
                    os.close(fd)


class Locks:
    """The identity locks of one folder."""

    def __init__(self, gate_path: Path) -> None:
        self._gate_path = gate_path

    def take(self, paths: LockedPaths, identity: str, holder: Holder) -> Lock:
        """Lock an identity, or raise `IdentityHeld` at once."""
        make_folder(paths.home)
        with gate(self._gate_path):
            file_fd = take_lock(paths.file)
            if file_fd is None:
                other = _note_in(paths.file)
                raise IdentityHeld(identity, other.pid, other.agent_id, other.started_at)
            try:
                home_fd = _lock_home(paths.home)
                if home_fd is None:
                    # The holder will write its name into the new lock file; until then it is unknown.
                    raise IdentityHeld(identity, None, None, None)
                lock = Lock(file_fd, home_fd, paths, self._gate_path)
                try:
                    lock._write_note(holder)
                except BaseException:
                    if home_fd != NOT_LOCKED:
                        os.close(home_fd)
                    raise
            except BaseException:
                os.close(file_fd)
                raise
            return lock

    def holder(self, paths: LockedPaths) -> Holder | None:
        """Who holds it; `None` if it is free."""
        with self.looking(paths) as holder:
            return holder

    @contextmanager
    def looking(self, paths: LockedPaths) -> Iterator[Holder | None]:
        """The holder, if any; a free lock cannot be taken by others inside this block."""
        # Without a gate file nobody has claimed here yet, or somebody has removed it: look in both cases.
        with readers_gate(self._gate_path):
            yield _look(paths)


def _look(paths: LockedPaths) -> Holder | None:
    try:
        fd = open_lock(paths.file, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        pass
    else:
        try:
            if not try_flock(fd, paths.file, fcntl.LOCK_SH):
                return _read(fd)
        finally:
            os.close(fd)
    home_fd = _lock_home(paths.home, fcntl.LOCK_SH)
    if home_fd is None:
        return Holder()
    if home_fd != NOT_LOCKED:
        os.close(home_fd)
    return None


def _lock_home(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    """None if somebody else has it; `NOT_LOCKED` where folders cannot be locked, or there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return NOT_LOCKED  # the code that needs the folder reports what is wrong with it
    try:
        if try_flock(fd, path, kind):
            return fd
    except StoreError as problem:
        log.debug("%s is protected by its lock file alone: %s", path, problem)
        os.close(fd)
        return NOT_LOCKED  # such as NFS, which locks only files that are open for writing
    os.close(fd)
    return None


def _note_in(path: Path) -> Holder:
    try:
        fd = open_lock(path, os.O_RDONLY)
    except (OSError, StoreError):
        return Holder()
    try:
        return _read(fd)
    finally:
        os.close(fd)


def _read(fd: int) -> Holder:
    try:
        return _decode_holder(os.pread(fd, MAX_NOTE_BYTES, 0))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Holder()


def _lost(path: Path) -> ClaimLost:
    return ClaimLost(
        f"{path} was removed or replaced, and another process has the identity. Claim the identity again.",
        str(path),
    )
