"""What `laneway migrate` has changed, so that `--undo` can take it back: one private file a migration.

Written before the file that it tells of is touched. An entry keeps the two keys that a
migration changes and nothing else of it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import FileDamaged, FileNewer
from laneway.base.paths import state_home
from laneway.store.files import make_folder, read_whole, write_whole

VERSION = 1
MAX_KEPT = 50
"""Migrations that can be looked up; whoever wants an older one has its backups."""
MAX_BYTES = 8 * 1024 * 1024
"""Thousands of entries; more is not ours."""
CHANGED_KEYS = ("command", "args")


class Changed(msgspec.Struct):
    """One entry: what its changed keys held, and what they hold now."""

    keys: tuple[str, ...]
    before: dict[str, Any]
    after: dict[str, Any]


class ChangedFile(msgspec.Struct):
    file: str
    backup: str
    before_sha256: str
    after_sha256: str
    entries: list[Changed]


class Migration(msgspec.Struct):
    at: str
    files: list[ChangedFile]
    version: int = VERSION


def folder(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    return state_home(environment, home) / "migrations"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def changed_part(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry that a migration may change."""
    return {key: entry[key] for key in CHANGED_KEYS if key in entry}


class Journal:
    """The record of one migration: `save` after each change of `migration`."""

    def __init__(self, path: Path, migration: Migration) -> None:
        self.path = path
        self.migration = migration

    @classmethod
    def begin(cls, where: Path) -> Journal:
        now = datetime.now(UTC)
        name = f"{now.strftime('%Y%m%dT%H%M%S%fZ')}-{os.urandom(4).hex()}.json"
        return cls(where / name, Migration(now.isoformat(timespec="seconds"), []))

    @classmethod
    def last(cls, where: Path) -> Journal | None:
        """The newest one; None if there is none. Raises `StoreError`."""
        newest = max(where.glob("*.json"), default=None)
        data = read_whole(newest, MAX_BYTES) if newest is not None else None
        if newest is None or data is None:
            return None
        try:
            told = msgspec.json.decode(data)
            version = told.get("version") if isinstance(told, dict) else None
            if isinstance(version, int) and version > VERSION:
                raise FileNewer(str(newest), version, VERSION)
            return cls(newest, msgspec.json.decode(data, type=Migration))
        except msgspec.DecodeError as problem:
            remedy = "Remove it, then put the backups beside the files back by hand."
            raise FileDamaged(f"The record {newest} is damaged. {remedy}", str(newest)) from problem

    def save(self) -> None:
        """Keep it, or remove it once it tells of nothing."""
        if not self.migration.files:
            self.path.unlink(missing_ok=True)
            return
        make_folder(self.path.parent)
        write_whole(self.path, msgspec.json.encode(self.migration))
        for old in sorted(self.path.parent.glob("*.json"))[:-MAX_KEPT]:
            old.unlink(missing_ok=True)
