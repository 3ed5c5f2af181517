"""The folder of one rollback: every content that it overwrites or writes, and what it does, on disk first.

contents       all of them, one after the other
journal.json   what is done in which order, and where each content lies; without it nothing was begun
committed      all is in place, and only needs to be tidied up
outcome.json   how it ended; without it the rollback is finished at the next look
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from laneway.base.errors import ContentGone, FileDamaged, FileNewer
from laneway.jobs.rollback.model import Outcome, RollbackJournal
from laneway.jobs.snapshots.beneath import CHUNK_BYTES
from laneway.jobs.snapshots.model import PathState
from laneway.store.files import (
    FILE_MODE,
    make_folder,
    read_whole,
    sync_folder,
    trouble,
    write_all,
    write_whole,
)

VERSION = 1
MAX_JOURNAL_BYTES = 256 * 1024 * 1024
JOURNAL, CONTENTS, COMMITTED, OUTCOME = "journal.json", "contents", "committed", "outcome.json"

_encode = msgspec.json.Encoder().encode
_decode_journal = msgspec.json.Decoder(RollbackJournal).decode
_decode_outcome = msgspec.json.Decoder(Outcome).decode


def key_of(state: PathState) -> str:
    """Under which a content is kept."""
    return state.blob or state.fingerprint


class ContentWriter:
    """Writes the contents of a rollback that is about to begin."""

    def __init__(self, folder: Path) -> None:
        self.places: dict[str, tuple[int, int]] = {}
        self._path = folder / CONTENTS
        self._fd = -1
        self._size = 0

    def __enter__(self) -> Self:
        make_folder(self._path.parent)
        try:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        except OSError as problem:
            raise trouble(self._path, problem) from problem
        return self

    def add(self, key: str, pieces: Iterable[bytes]) -> None:
        if key in self.places:
            return
        start = self._size
        for piece in pieces:
            try:
                write_all(self._fd, piece)
            except OSError as problem:
                raise trouble(self._path, problem) from problem
            self._size += len(piece)
        self.places[key] = (start, self._size - start)

    def sync(self) -> None:
        """When this returns, all of it is on disk."""
        try:
            os.fsync(self._fd)
            sync_folder(self._path.parent)
        except OSError as problem:
            raise trouble(self._path, problem) from problem

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)


class StoredRollback:
    """A rollback on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # ── writing, in this order ─────────────────────────────────────────────

    def begin(self, journal: RollbackJournal) -> None:
        write_whole(self.folder / JOURNAL, _encode(journal))

    def commit(self) -> None:
        write_whole(self.folder / COMMITTED, b"")

    def end(self, outcome: Outcome) -> None:
        write_whole(self.folder / OUTCOME, _encode(outcome))

    def discard(self) -> None:
        """Nothing was begun. The journal goes first: without it nobody will try to finish this."""
        try:
            os.unlink(self.folder / JOURNAL)
            sync_folder(self.folder)
        except OSError:
            pass  # there is none
        shutil.rmtree(self.folder, ignore_errors=True)

    # ── reading ────────────────────────────────────────────────────────────

    def journal(self) -> RollbackJournal | None:
        path = self.folder / JOURNAL
        data = read_whole(path, MAX_JOURNAL_BYTES)
        if data is None:
            return None
        try:
            journal = _decode_journal(data)
        except msgspec.MsgspecError as problem:
            raise FileDamaged(f"{path} is damaged: the rollback cannot be finished.", str(path)) from problem
        if journal.version != VERSION:
            raise FileNewer(str(path), journal.version, VERSION)
        return journal

    def outcome(self) -> Outcome | None:
        path = self.folder / OUTCOME
        data = read_whole(path, MAX_JOURNAL_BYTES)
        try:
            return _decode_outcome(data) if data is not None else None
        except msgspec.MsgspecError as problem:
            raise FileDamaged(f"{path} is damaged.", str(path)) from problem

    @property
    def is_committed(self) -> bool:
        return (self.folder / COMMITTED).exists()


class Kept:
    """The contents of a rollback, to read."""

    def __init__(self, record: StoredRollback, journal: RollbackJournal) -> None:
        self._path = record.folder / CONTENTS
        self._places = journal.contents

    def has(self, state: PathState) -> bool:
        return key_of(state) in self._places

    def pieces(self, state: PathState) -> Iterator[bytes]:
        """One content, piece by piece. `ContentGone` if it is not there."""
        key = key_of(state)
        if key not in self._places:
            raise ContentGone(key)
        start, left = self._places[key]
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as problem:
            raise ContentGone(key) from problem
        try:
            while left:
                piece = os.pread(fd, min(left, CHUNK_BYTES), start)
                if not piece:
                    raise ContentGone(key)
                yield piece
                start, left = start + len(piece), left - len(piece)
        finally:
            os.close(fd)

    def read(self, state: PathState) -> bytes:
        return b"".join(self.pieces(state))

    def fill(self, states: Iterable[PathState], writer: ContentWriter) -> None:
        """Copy contents into another rollback."""
        for state in states:
            writer.add(key_of(state), self.pieces(state))
