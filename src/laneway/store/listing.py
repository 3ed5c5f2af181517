"""Cached, read-only rows of a team's session registries: a file is read again only if it has changed.

A `RegistryContent` has everything in a file, so that it can be written again; a `SessionRow` has what a
list and a resume need, decoded in one step. A file of another shape (of another program, or damaged) is
read as a `RegistryContent`, so that both give the same result. Blocking. Threads may share a listing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import FileDamaged
from laneway.store.files import read_whole
from laneway.store.registry import KNOWN, MAX_REGISTRY_BYTES, VERSION, Entry, SessionFields, decode

SETTLED_S = 2.0
"""Age of a file before it is cached. Within one tick of a file system's clock, two seconds at worst,
another change might leave no trace."""
MAX_REMEMBERED_BYTES = 16 * 1024 * 1024
"""Of all cached files together: some 20,000 sessions. Others are read each time."""
SLACK_BYTES = 64 * 1024
"""How much a file may grow between `stat` and reading it."""


class SessionRow(SessionFields, kw_only=True, frozen=True):
    """One session, with the field names of a registry."""

    backend: str | None = None
    thread_id: str | None = None
    last_active_at: str | None = None
    state: str | None = None
    role: str | None = None
    agent_name: str | None = None
    agent_source: str | None = None
    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    reasoning_effort: str | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    config: dict[str, Any] | None = None
    native: dict[str, Any] | None = None
    ephemeral: bool | None = None
    is_empty: bool | None = None
    tools: list[str] | None = None
    turns: int | None = None
    tokens: int | None = None

    @property
    def entry(self) -> Entry:
        """The entry, without fields of other programs."""
        return Entry(**{name: getattr(self, name) for name in KNOWN})


EXTRA_KINDS: dict[str, Any] = {
    "backend": str,
    "state": str,
    "role": str,
    "agent_name": str,
    "agent_source": str,
    "model": str,
    "sandbox": str,
    "approval_policy": str,
    "reasoning_effort": str,
    "base_instructions": str,
    "developer_instructions": str,
    "config": dict[str, Any],
    "native": dict[str, Any],
    "ephemeral": bool,
    "is_empty": bool,
    "tools": list[str],
    "turns": int,
    "tokens": int,
}
"""Fields of a session that an `Entry` keeps in its `extra`."""


def row_of(entry: Entry) -> SessionRow:
    """The row of an entry. Fields of a wrong type, which only another program writes, are left out."""
    entry_fields: dict[str, Any] = {name: getattr(entry, name) for name in KNOWN}
    extra: dict[str, Any] = {name: entry.read(name, kind) for name, kind in EXTRA_KINDS.items()}
    return SessionRow(**entry_fields, **extra)


def disowned(row: SessionRow) -> SessionRow:
    """The row if no process holds its identity: an active session becomes stale."""
    return msgspec.structs.replace(row, status="stale") if row.status == "active" else row


class _RegistryFile(msgspec.Struct):
    version: int
    sessions: list[SessionRow]


_decoder = msgspec.json.Decoder(_RegistryFile)


def rows_in(data: bytes, where: str) -> tuple[SessionRow, ...]:
    """The sessions of a registry; `FileDamaged` or `FileNewer` if we cannot read it."""
    try:
        data.decode()  # fields that we leave out must be text, too
        file = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        file = None
    if file is None or file.version != VERSION or any(map(_has_other_names, file.sessions)):
        return tuple(map(row_of, decode(data, where).entries))
    return tuple(file.sessions)


def _has_other_names(row: SessionRow) -> bool:
    """Whether a field is there only under the name that we do not use."""
    is_thread_alone = row.backend_id is None and row.thread_id is not None
    return is_thread_alone or (not row.last_active and bool(row.last_active_at))


class _CachedFile(msgspec.Struct, frozen=True):
    state: tuple[int, ...]
    rows: tuple[SessionRow, ...]


class Listing:
    """The registries of one team, by path."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` is the clock of file times."""
        self._clock = clock
        self._files: dict[str, _CachedFile] = {}
        self._bytes = 0

    @property
    def remembered(self) -> int:
        """Files that are in the cache."""
        return len(self._files)

    def rows(self, path: str) -> tuple[SessionRow, ...] | None:
        """The present sessions of a registry; none where there is no registry. Errors as in `decode`."""
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            self.forget(path)
            return None
        except OSError:
            if not os.path.lexists(path):  # the identity's folder is, say, a link to itself
                self.forget(path)
                return None
            status = None  # reading it raises the reason
        state = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino) if status else ()
        cached = self._files.get(path)
        if cached is not None and cached.state == state:
            return cached.rows
        self.forget(path)
        size = status.st_size if status else 0
        data = _read(Path(path), size)
        if data is None:
            return None
        rows = rows_in(data, path)
        if status is not None and self._clock() - max(status.st_mtime, status.st_ctime) > SETTLED_S:
            self._cache(path, _CachedFile(state, rows), size)
        return rows

    def _cache(self, path: str, file: _CachedFile, size: int) -> None:
        if self._bytes + size <= MAX_REMEMBERED_BYTES:
            self._files[path] = file
            self._bytes += size

    def forget(self, path: str) -> None:
        cached = self._files.pop(path, None)
        if cached is not None:
            self._bytes -= cached.state[2]

    def keep_only(self, paths: set[str]) -> None:
        """Drop files of identities that no longer exist."""
        for path in self._files.keys() - paths:
            self.forget(path)


def _read(path: Path, size: int) -> bytes | None:
    try:
        return read_whole(path, min(size + SLACK_BYTES, MAX_REGISTRY_BYTES))
    except FileDamaged:
        return read_whole(path, MAX_REGISTRY_BYTES)  # it may have grown; if not, this raises the reason
