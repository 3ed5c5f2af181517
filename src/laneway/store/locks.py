"""Who is who: one lock per identity, held for as long as its process wants, or lives.

The truth is the `flock`: the kernel frees it when the process ends, however that happens.
The pid, agent and time inside the file are information for people (and for the old
atm-agent-mcp, which reads them). Lock files stay; only their text goes with the claim.

Whoever looks at a lock must try it for an instant, and could be mistaken for a holder. So
looking and claiming both happen behind a gate, a second lock that nobody holds for longer.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import ClaimLost, IdentityHeld, StoreError
from laneway.store.files import FILE_MODE, make_folder, trouble, write_all

MAX_NOTE_BYTES = 4096
"""More than a holder writes about itself; a larger file was not written by one."""


class Holder(msgspec.Struct, frozen=True):
    """What a holder wrote about itself; `None` where it did not."""

    pid: int | None = None
    agent_id: str | None = None
    started_at: str | None = None


@contextmanager
def gate(path: Path) -> Iterator[None]:
    """Behind here is one thread of one process at a time. For microseconds of work only."""
    fd = _open(path, os.O_RDWR | os.O_CREAT)
    try:
        _flock(fd, path, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextmanager
def readers_gate(path: Path) -> Iterator[bool]:
    """The same without making anything; false where nobody has ever written."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield False
        return
    except OSError as problem:
        raise trouble(path, problem, "read") from problem
    try:
        _flock(fd, path, fcntl.LOCK_EX)
        yield True
    finally:
        os.close(fd)


class Lock:
    """A held lock. `Locks.take` makes one."""

    def __init__(self, fd: int, path: Path, gate_path: Path) -> None:
        self._fd = fd
        self._path = path
        self._gate_path = gate_path

    def check(self) -> None:
        """Raise `ClaimLost` unless the lock is ours still. Cheap: called before every write under it."""
        if self._fd < 0:
            raise ClaimLost(f"{self._path} was given up. Claim the identity again.", str(self._path))
        # A lock file that somebody removed can be claimed anew while we still hold the old one.
        if not _is_at(self._fd, self._path):
            raise ClaimLost(
                f"{self._path} was removed or replaced. Claim the identity again.", str(self._path)
            )

    def note(self, holder: Holder) -> None:
        """Write who holds it."""
        self.check()
        try:
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.ftruncate(self._fd, 0)
            write_all(self._fd, msgspec.json.encode(holder) + b"\n")
        except OSError as problem:
            raise trouble(self._path, problem) from problem

    def release(self) -> None:
        """Twice is harmless."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        try:
            # Behind the gate, so that nobody sees a held lock without its holder's name.
            with gate(self._gate_path):
                os.ftruncate(fd, 0)
        except (StoreError, OSError):
            pass  # the folder is gone or full: the name stays, the lock is free all the same
        finally:
            os.close(fd)


class Locks:
    """The identity locks of one folder."""

    def __init__(self, gate_path: Path) -> None:
        self._gate_path = gate_path

    def take(self, path: Path, identity: str, holder: Holder) -> Lock:
        """Hold it, or raise `IdentityHeld` at once."""
        make_folder(path.parent)
        with gate(self._gate_path):
            fd = _open(path, os.O_RDWR | os.O_CREAT)
            try:
                if not _flock(fd, path, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    other = _read(fd)
                    raise IdentityHeld(identity, other.pid, other.agent_id, other.started_at)
                lock = Lock(fd, path, self._gate_path)
                lock.note(holder)
            except BaseException:
                os.close(fd)
                raise
            return lock

    def holder(self, path: Path) -> Holder | None:
        """Who holds it; `None` if it is free."""
        with self.looking(path) as found:
            return found

    @contextmanager
    def looking(self, path: Path) -> Iterator[Holder | None]:
        """Who holds it; where it is free, nobody can take it inside this block."""
        with readers_gate(self._gate_path) as is_used:
            # Every claimer makes the gate first: without one there is no holder.
            yield self._look(path) if is_used else None

    def _look(self, path: Path) -> Holder | None:
        try:
            fd = _open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return None if _flock(fd, path, fcntl.LOCK_SH | fcntl.LOCK_NB) else _read(fd)
        finally:
            os.close(fd)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE)
    except FileNotFoundError:
        if flags & os.O_CREAT:
            raise StoreError(f"The folder {path.parent} is gone.", str(path)) from None
        raise
    except OSError as problem:
        raise trouble(path, problem) from problem


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def _flock(fd: int, path: Path, kind: int) -> bool:
    """False if it is held and we do not wait."""
    try:
        fcntl.flock(fd, kind)
    except BlockingIOError:
        return False
    except OSError as problem:
        raise trouble(path, problem) from problem  # some network file systems cannot lock
    return True


def _read(fd: int) -> Holder:
    try:
        return msgspec.json.decode(os.pread(fd, MAX_NOTE_BYTES, 0), type=Holder)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Holder()
