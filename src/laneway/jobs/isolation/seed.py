"""Lets the shadow of a fresh copy know what we have just written there, so that it need not read all of it.

The index of a shadow says what each file looked like when its content was known. In a copy it is known when
we have written a file, as long as nobody else is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from laneway.jobs.snapshots import index as seen
from laneway.jobs.snapshots.beside import usual_modes
from laneway.jobs.snapshots.index import Index, IndexedFolder
from laneway.jobs.snapshots.model import Snapshot
from laneway.jobs.snapshots.objects import Objects
from laneway.jobs.snapshots.reading import is_settled
from laneway.store.files import make_folder

CLOCK_NS = 2_000_000_000
"""Times of change from just before are kept in the shadow's snapshots, too."""


def seed(folder: Path, algorithm: str, folders: Mapping[bytes, IndexedFolder], started_ns: int) -> None:
    """`folders` are those of the copy with what was written, when `started_ns` was long ago."""
    make_folder(folder)
    objects = Objects(folder / "repository", algorithm)
    objects.prepare()
    tree = objects.add("tree", b"")
    objects.flush()
    now_ns = time.time_ns()
    known = {path: _with_unsettled(files, now_ns) for path, files in folders.items()}
    nothing = Snapshot(tree, started_ns / 1e9, now_ns / 1e9)
    made = Index(seen.VERSION, algorithm, started_ns - CLOCK_NS, usual_modes(known), known, nothing)
    seen.save(folder / "index", made)


def _with_unsettled(files: IndexedFolder, now_ns: int) -> IndexedFolder:
    """A change within the clock's tick would not show, so those files are read again."""
    unsettled = frozenset(name for name, look in files.looks.items() if not is_settled(look, now_ns))
    return msgspec.structs.replace(files, unsettled=unsettled)
