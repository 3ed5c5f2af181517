"""The session registry of one identity as a value (`RegistryContent`), and its file format.

    {"version": 1, "sessions": [{"agent_id": …, "backend_id": …, "thread_id": …, …}]}

Pure: bytes in, `RegistryContent` out, and back. Where older programs have two names for a field (`backend_id`
and `thread_id`, `last_active` and `last_active_at`), either is read and both are written. Unknown
fields are kept byte for byte; so is an entry that cannot be read at all.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from laneway.base.errors import FileDamaged, FileNewer, StoreError
from laneway.base.prepare import prepare
from laneway.core.named.records import Status
from laneway.store.stamps import parse as parse_time

VERSION = 1
MAX_REGISTRY_BYTES = 16 * 1024 * 1024
"""A session takes some 600 bytes, more with a caller's instructions; Laneway never writes a larger file."""
MAX_ENTRY_BYTES = 1024 * 1024
"""One session with the longest instructions that Codex accepts; more is a mistake of the caller."""

ENDED: frozenset[Status] = frozenset(("closed", "stale"))
"""Statuses that pruning removes. An interrupted session waits for its owner."""

T = TypeVar("T")


class SessionFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a session that all programs know. Times are ISO 8601 texts, as in the file."""

    agent_id: str
    identity: str
    team: str
    backend_id: str | None = None
    repo_root: str | None = None
    repo_name: str | None = None
    branch: str | None = None
    cwd: str | None = None
    started_at: str = ""
    last_active: str = ""
    status: Status = "active"
    tag: str | None = None


@prepare
class Entry(SessionFields, frozen=True, kw_only=True):
    """One session with everything that its file has of it."""

    extra: dict[str, Any] = {}
    """Further fields of the file: those that callers add, and those of other programs (as raw JSON)."""

    def read(self, field: str, kind: type[T]) -> T | None:
        """A field of `extra`; `None` if it is missing or of another type."""
        try:
            return msgspec.convert(_plain(self.extra.get(field)), kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


KNOWN = SessionFields.__struct_fields__
OTHER_NAMES = (("agent_id", "codex_id"), ("backend_id", "thread_id"), ("last_active", "last_active_at"))
"""The name that we use, and the other one that a file may have."""


class RegistryRow(msgspec.Struct, frozen=True):
    """One element of `sessions`: its bytes, and the entry in them (`None` if it cannot be read)."""

    raw: bytes
    entry: Entry | None


class RegistryContent(msgspec.Struct, frozen=True):
    """All sessions in one registry file."""

    rows: tuple[RegistryRow, ...] = ()
    others: dict[str, msgspec.Raw] = {}
    """Fields of the file beside `version` and `sessions`."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(row.entry for row in self.rows if row.entry is not None)

    def get(self, agent_id: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.agent_id == agent_id), None)

    def put(self, entry: Entry) -> RegistryContent:
        """A copy with this entry, which replaces the one with its `agent_id` or goes to the end."""
        old = self.get(entry.agent_id)
        if old is not None:
            entry = msgspec.structs.replace(entry, extra={**old.extra, **entry.extra})
        row = RegistryRow(encode(entry), entry)
        if old is None:
            return msgspec.structs.replace(self, rows=(*self.rows, row))
        return msgspec.structs.replace(self, rows=tuple(row if r.entry is old else r for r in self.rows))

    def disowned(self) -> RegistryContent:
        """A copy for a new owner: sessions marked active have lost their process and become stale."""
        content = self
        for entry in self.entries:
            if entry.status == "active":
                content = content.put(msgspec.structs.replace(entry, status="stale"))
        return content

    def without(self, is_dropped: Callable[[Entry], bool]) -> RegistryContent:
        remaining = tuple(row for row in self.rows if row.entry is None or not is_dropped(row.entry))
        return msgspec.structs.replace(self, rows=remaining)

    def render(self) -> bytes:
        """The file's bytes, one session per line: quick to write, and readable with `grep`."""
        head = msgspec.json.encode({"version": VERSION, **self.others})
        return head[:-1] + b',"sessions":[\n' + b",\n".join(row.raw for row in self.rows) + b"\n]}\n"


def is_older(entry: Entry, age: timedelta, now: datetime) -> bool:
    """Whether a session was last active longer ago. Always true for age 0, false without a readable time."""
    if age <= timedelta(0):
        return True
    when = parse_time(entry.last_active) or parse_time(entry.started_at)
    return when is not None and now - when > age


def fitted(content: RegistryContent, max_entries: int, keep: str) -> RegistryContent:
    """The content within its limits: drops ended sessions, least recently active first, but never `keep`."""
    surplus = len(content.rows) - max_entries
    too_many_bytes = sum(len(row.raw) + 2 for row in content.rows) - (MAX_REGISTRY_BYTES - MAX_ENTRY_BYTES)
    if surplus <= 0 and too_many_bytes <= 0:
        return content
    removed: set[str] = set()
    ended = [row for row in content.rows if row.entry and row.entry.status in ENDED]
    for row in sorted(ended, key=lambda row: row.entry.last_active if row.entry else ""):
        if len(removed) >= surplus and too_many_bytes <= 0:
            break
        if row.entry is not None and row.entry.agent_id != keep:
            removed.add(row.entry.agent_id)
            too_many_bytes -= len(row.raw) + 2
    return content.without(lambda entry: entry.agent_id in removed)


# ── the file's format ──────────────────────────────────────────────────────


def decode(data: bytes, where: str) -> RegistryContent:
    """The content decoded from these bytes; `FileDamaged` or `FileNewer` if we cannot read it."""
    try:
        data.decode()  # fields that we only pass on must be text, too
        others = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        version = msgspec.json.decode(others.pop("version"), type=int)
        raw_entries = msgspec.json.decode(others.pop("sessions"), type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        raise FileDamaged(f"{where} is damaged: it is not a registry of sessions.", where) from None
    if version > VERSION:
        raise FileNewer(where, version, VERSION)
    return RegistryContent(tuple(RegistryRow(bytes(raw), _entry(raw)) for raw in raw_entries), others)


def encode(entry: Entry) -> bytes:
    """One line of JSON. Raises `StoreError` if it is too long."""
    fields = {name: getattr(entry, name) for name in KNOWN}
    fields["thread_id"] = entry.backend_id
    fields["last_active_at"] = entry.last_active
    entry_fields = {name: _text(value) for name, value in fields.items()}
    try:
        extra = {_text(name): value for name, value in entry.extra.items() if name not in entry_fields}
        line = msgspec.json.encode({**entry_fields, **extra})
    except (UnicodeEncodeError, TypeError, OverflowError) as problem:
        raise StoreError(f"The session {entry.agent_id} has a field that is no JSON.") from problem
    if len(line) > MAX_ENTRY_BYTES:
        raise StoreError(f"The session {entry.agent_id} is longer than {MAX_ENTRY_BYTES} bytes.")
    return line


def _entry(raw: msgspec.Raw) -> Entry | None:
    try:
        fields: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        for name, other in OTHER_NAMES:
            if _plain(fields.get(name)) is None and other in fields:
                fields[name] = fields[other]
        entry_fields = {name: _plain(fields[name]) for name in KNOWN if name in fields}
        written_anyway = {*KNOWN, "thread_id", "last_active_at"}
        extra = {name: value for name, value in fields.items() if name not in written_anyway}
        return msgspec.convert({**entry_fields, "extra": extra}, Entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _text(value: Any) -> Any:
    """Folder names may contain bytes that are no text; JSON cannot."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
