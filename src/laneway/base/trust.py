"""Which repositories the user trusts to choose programs and widen access.

Owns one small file in our state folder: a list of real paths. A repository that moves, or
that is reached through a link to another place, is another repository. A file that is
damaged, newer, or open to others means that nothing is trusted: it never means that
everything is. Only `laneway config trust|untrust` writes it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import FileDamaged, FileNewer, StoreError
from laneway.base.kinds import shown
from laneway.base.paths import state_home

VERSION = 1
MAX_FILE_BYTES = 4 * 1024 * 1024
"""Tens of thousands of paths; more is not ours."""
LOCK_S = 5.0
"""To wait for another writer, who needs milliseconds; a longer one is stopped or stuck."""


def trust_file(environment: Mapping[str, str], home: Path) -> Path:
    """`$XDG_STATE_HOME/laneway/trust.json`."""
    return state_home(environment, home) / "trust.json"


class Trust(msgspec.Struct, frozen=True):
    roots: frozenset[str] = frozenset()
    problem: str | None = None
    """Why nothing is trusted, where that is not for want of asking."""

    def covers(self, root: Path) -> bool:
        """Asks about one real path, letter by letter: links are for the caller to resolve, once."""
        return str(root) in self.roots


def read(file: Path) -> Trust:
    """What is trusted. Never raises: in doubt, nothing is."""
    try:
        return Trust(frozenset(_read(file)))
    except StoreError as problem:
        return Trust(problem=str(problem))


def change(file: Path, root: Path, *, trusted: bool) -> bool:
    """Trust a repository, or no longer. Tells whether that changed anything."""
    name = os.path.realpath(root)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(file.parent):
            roots = set(_read(file))
            if (name in roots) == trusted:
                return False
            _write(file, roots | {name} if trusted else roots - {name})
            return True
    except OSError as problem:
        raise StoreError(
            f"The trust file {shown(file)} cannot be written ({problem.strerror}): make its folder yours.",
            str(file),
        ) from problem


def _read(file: Path) -> list[str]:
    import json  # paths may hold bytes that are no UTF-8; msgspec refuses their escapes

    remedy = "remove it, then trust your repositories again"
    try:
        with open(file, "rb") as opened:
            facts = os.fstat(opened.fileno())
            raw = opened.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return []
    except OSError as problem:
        raise StoreError(
            f"The trust file {shown(file)} cannot be read ({problem.strerror}): {remedy}.", str(file)
        ) from problem
    if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o022:
        raise StoreError(
            f"The trust file {shown(file)} can be written by others: make it yours with mode 600.", str(file)
        )
    try:
        data = json.loads(raw) if len(raw) <= MAX_FILE_BYTES else None
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and isinstance(data.get("version"), int) and data["version"] > VERSION:
        raise FileNewer(shown(file), data["version"], VERSION)
    roots = data.get("trusted") if isinstance(data, dict) and data.get("version") == VERSION else None
    if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
        raise FileDamaged(f"The trust file {shown(file)} is damaged: {remedy}.", str(file))
    return roots


def _write(file: Path, roots: set[str]) -> None:
    """A crash leaves the old file or the new one."""
    import json

    text = json.dumps({"version": VERSION, "trusted": sorted(roots)}, indent=2) + "\n"
    fresh = file.with_name(f"{file.name}.{os.getpid()}.tmp")  # the lock makes it ours alone
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as opened:
        opened.write(text.encode())
        opened.flush()
        os.fsync(fd)
    os.replace(fresh, file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time."""
    import fcntl

    fd = os.open(folder / "trust.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + LOCK_S
        while not _take(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if time.monotonic() > until:
                raise StoreError("Another laneway is changing what is trusted: try again.", str(folder))
            time.sleep(0.02)
        yield
    finally:
        os.close(fd)


def _take(flock: Callable[[int, int], None], fd: int, how: int) -> bool:
    try:
        flock(fd, how)
    except BlockingIOError:
        return False
    return True
