"""Records of the changes that `laneway setup` and `laneway migrate` made, for `--undo`.

One private file per run, written before the client's file is touched. Of an entry it keeps the
keys that were changed and nothing else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.errors import FileDamaged, FileNewer
from laneway.base.paths import state_home
from laneway.store.files import make_folder, read_whole, write_whole

VERSION = 2
MAX_KEPT = 50
"""Runs that can be undone; for older ones there are the copies of the files."""
MAX_BYTES = 8 * 1024 * 1024
"""Thousands of entries; more is not ours."""
OLD_FOLDER = "migrations"
"""Where version 1 kept its records, which only `migrate` wrote. They are still read."""

Maker: TypeAlias = Literal["migrate", "setup"]


class Changed(msgspec.Struct):
    """One entry: its changed keys before and after. None where there was no entry."""

    keys: tuple[str, ...]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class ChangedFile(msgspec.Struct):
    """One file that was changed, and its backup."""

    file: str
    backup: str
    """Empty if there was no file."""
    before_sha256: str
    after_sha256: str
    entries: list[Changed]
    made_folders: list[str] = []
    """Folders that were created for it, the outermost first."""

    @property
    def is_new(self) -> bool:
        return not self.backup


class ChangeRecord(msgspec.Struct):
    """The changes of one run, as they are kept."""

    at: str
    files: list[ChangedFile]
    version: int = VERSION
    by: Maker = "migrate"
    client: str = ""
    """The client that `setup` was called for."""


def folder(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    return state_home(environment, home) / "changes"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def changed(keys: tuple[str, ...], before: dict[str, Any] | None, after: dict[str, Any] | None) -> Changed:
    """What differs between two states of an entry."""
    if before is None or after is None:
        return Changed(keys, before, after)
    changed_keys = [key for key in {**before, **after} if before.get(key, ...) != after.get(key, ...)]
    return Changed(keys, _part(before, changed_keys), _part(after, changed_keys))


def _part(entry: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    return {key: entry[key] for key in keys if key in entry}


class Journal:
    """The record of one run: `save` after each change of `record`."""

    def __init__(self, path: Path, record: ChangeRecord) -> None:
        self.path = path
        self.record = record

    @classmethod
    def begin(cls, folder: Path, by: Maker, client: str = "") -> Journal:
        now = datetime.now(UTC)
        name = f"{now.strftime('%Y%m%dT%H%M%S%fZ')}-{os.urandom(4).hex()}.json"
        return cls(folder / name, ChangeRecord(now.isoformat(timespec="seconds"), [], by=by, client=client))

    @classmethod
    def last(cls, folder: Path, by: Maker, client: str = "") -> Journal | None:
        """The newest record of this command, and of this client if one is named. Raises `StoreError`."""
        for path in _newest_first(folder):
            journal = cls._read(path)
            if journal is not None and journal.record.by == by and client in ("", journal.record.client):
                return journal
        return None

    @classmethod
    def _read(cls, path: Path) -> Journal | None:
        data = read_whole(path, MAX_BYTES)
        if data is None:
            return None
        try:
            tree = msgspec.json.decode(data)
            version = tree.get("version") if isinstance(tree, dict) else None
            if isinstance(version, int) and version > VERSION:
                raise FileNewer(str(path), version, VERSION)
            return cls(path, msgspec.json.decode(data, type=ChangeRecord))
        except msgspec.DecodeError as problem:
            copies = path.parent.parent / "backups"
            remedy = f"Remove it, then put the files back by hand: their copies are in {copies}."
            raise FileDamaged(f"The record {path} is damaged. {remedy}", str(path)) from problem

    def save(self) -> None:
        """Write the record, or remove it once it is empty."""
        if not self.record.files:
            self.path.unlink(missing_ok=True)
            return
        make_folder(self.path.parent)
        write_whole(self.path, msgspec.json.encode(self.record))
        for old in sorted(self.path.parent.glob("*.json"))[:-MAX_KEPT]:
            old.unlink(missing_ok=True)


def _newest_first(folder: Path) -> Iterator[Path]:
    records = [*folder.glob("*.json"), *(folder.parent / OLD_FOLDER).glob("*.json")]
    yield from sorted(records, key=lambda path: path.name, reverse=True)
