"""Comparisons of two snapshots that were made before: snapshots never change, so neither does what differs.

A file for each pair. A run is judged anew at the end of each of its jobs and whenever somebody looks, and
comparing takes three processes of git. A file that is missing or damaged costs time, nothing else. Blocking.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import msgspec

from laneway.base.errors import StoreError
from laneway.jobs.snapshots.model import Change, Snapshot
from laneway.store.files import make_folder, read_whole, write_whole

log = logging.getLogger(__name__)

VERSION = 1
"""Of what a comparison comes to. Those of another version are not found."""
MAX_BYTES = 16 * 1024 * 1024
"""Of one comparison: 50,000 changed files. A larger one is made again each time."""

_decode = msgspec.json.Decoder(tuple[Change, ...]).decode
_encode = msgspec.json.encode


class Comparisons:
    """The comparisons of one shadow repository, in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, before: Snapshot, after: Snapshot) -> tuple[Change, ...] | None:
        try:
            data = read_whole(self._path(before, after), MAX_BYTES)
            return None if data is None else _decode(data)
        except (StoreError, msgspec.MsgspecError):
            return None

    def add(self, before: Snapshot, after: Snapshot, changes: tuple[Change, ...]) -> None:
        data = _encode(changes)
        if len(data) > MAX_BYTES:
            return
        try:
            make_folder(self._folder)
            write_whole(self._path(before, after), data)
        except StoreError as problem:
            log.warning("A comparison of snapshots is not kept: %s", problem)

    def _path(self, before: Snapshot, after: Snapshot) -> Path:
        # The time of the first one decides which times of change are told.
        key = _encode((VERSION, before.tree, before.started_at, after.tree))
        return self._folder / f"{hashlib.sha256(key).hexdigest()[:32]}.json"
