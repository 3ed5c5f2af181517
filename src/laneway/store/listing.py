"""What the registries of a team say, for looking only: each file is read once for as long as it is the same.

A `Book` keeps all that stands in a file, to be written again; a `SessionRow` has what is shown and what
resuming needs, decoded in one step. A file that does not fit that shape (of another program, or damaged)
is read as a book, so that both say the same. Blocking. Threads may share a listing.
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
from laneway.store.registry import MAX_REGISTRY_BYTES, VERSION, Entry, Status, decode

SETTLED_S = 2.0
"""Since a file was written, before it is remembered. Within one tick of a file system's clock, which is
two seconds at worst, another change might leave no trace."""
MAX_REMEMBERED_BYTES = 16 * 1024 * 1024
"""Of all files together whose rows are remembered: some 20,000 sessions. Others are read each time."""
SLACK_BYTES = 64 * 1024
"""That a file may have grown by, from looking at it to reading it."""


class SessionRow(msgspec.Struct, kw_only=True, frozen=True):
    """One session, under the names that a registry has for its fields."""

    agent_id: str
    identity: str
    team: str
    backend_id: str | None = None
    thread_id: str | None = None
    repo_root: str | None = None
    repo_name: str | None = None
    branch: str | None = None
    cwd: str | None = None
    started_at: str = ""
    last_active: str = ""
    last_active_at: str | None = None
    status: Status = "active"
    tag: str | None = None
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
        """Without what other programs keep there."""
        return Entry(**{name: getattr(self, name) for name in IN_ENTRY})


IN_ENTRY = tuple(name for name in Entry.__struct_fields__ if name != "extra")
EXTRA_KINDS: dict[str, Any] = {
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
"""What a session has and an `Entry` keeps in its `extra`."""


def row_of(entry: Entry) -> SessionRow:
    """Fields of a wrong type, which only another program writes, count as not there."""
    known: dict[str, Any] = {name: getattr(entry, name) for name in IN_ENTRY}
    extra: dict[str, Any] = {name: entry.read(name, kind) for name, kind in EXTRA_KINDS.items()}
    return SessionRow(**known, **extra)


def disowned(row: SessionRow) -> SessionRow:
    """As it is if nobody holds its identity: what was active has lost its process."""
    return msgspec.structs.replace(row, status="stale") if row.status == "active" else row


class _File(msgspec.Struct):
    version: int
    sessions: list[SessionRow]


_decoder = msgspec.json.Decoder(_File)


def rows_in(data: bytes, where: str) -> tuple[SessionRow, ...]:
    """The sessions of a registry; `FileDamaged` or `FileNewer` if it is none for us."""
    try:
        data.decode()  # also what we leave out must be text
        file = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        file = None
    if file is None or file.version != VERSION or any(map(_has_other_names, file.sessions)):
        return tuple(map(row_of, decode(data, where).entries))
    return tuple(file.sessions)


def _has_other_names(row: SessionRow) -> bool:
    """Whether a field stands only under the name that we do not use."""
    is_thread_alone = row.backend_id is None and row.thread_id is not None
    return is_thread_alone or (not row.last_active and bool(row.last_active_at))


class _Remembered(msgspec.Struct, frozen=True):
    state: tuple[int, ...]
    rows: tuple[SessionRow, ...]


class Listing:
    """The registries of one team, by path."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` tells the time that files are stamped with."""
        self._clock = clock
        self._files: dict[str, _Remembered] = {}
        self._bytes = 0

    @property
    def remembered(self) -> int:
        """Files that need not be read again unless they change."""
        return len(self._files)

    def rows(self, path: str) -> tuple[SessionRow, ...] | None:
        """The sessions in a registry as of now; none where there is no registry. `StoreError` as a book's."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            self.forget(path)
            return None
        except OSError:
            if not os.path.lexists(path):  # the identity's folder is no folder but, say, a link to itself
                self.forget(path)
                return None
            found = None  # reading tells why
        state = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino) if found else ()
        known = self._files.get(path)
        if known is not None and known.state == state:
            return known.rows
        self.forget(path)
        size = found.st_size if found else 0
        data = _read(Path(path), size)
        if data is None:
            return None
        rows = rows_in(data, path)
        if found is not None and self._clock() - max(found.st_mtime, found.st_ctime) > SETTLED_S:
            self._remember(path, _Remembered(state, rows), size)
        return rows

    def _remember(self, path: str, file: _Remembered, size: int) -> None:
        if self._bytes + size <= MAX_REMEMBERED_BYTES:
            self._files[path] = file
            self._bytes += size

    def forget(self, path: str) -> None:
        known = self._files.pop(path, None)
        if known is not None:
            self._bytes -= known.state[2]

    def keep_only(self, paths: set[str]) -> None:
        """Forget the files of identities that are gone."""
        for path in self._files.keys() - paths:
            self.forget(path)


def _read(path: Path, size: int) -> bytes | None:
    try:
        return read_whole(path, min(size + SLACK_BYTES, MAX_REGISTRY_BYTES))
    except FileDamaged:
        return read_whole(path, MAX_REGISTRY_BYTES)  # it may have grown; if not, this tells what is wrong
