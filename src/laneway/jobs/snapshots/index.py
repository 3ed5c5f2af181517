"""What the last snapshot saw of each file, so that the next one reads only what has changed.

One private file, replaced as a whole when a snapshot is complete. A damaged one, or one of another
version, is as good as none: the next snapshot then reads everything.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from laneway.base.errors import FileDamaged
from laneway.jobs.snapshots.beneath import Look
from laneway.jobs.snapshots.model import Snapshot
from laneway.store.files import read_whole, write_whole

VERSION = 1
MAX_BYTES = 512 * 1024 * 1024


class IndexedFolder(msgspec.Struct, array_like=True):
    """A folder as it was seen. Names are bytes, contents are ids in bytes."""

    mode: int = 0
    changed_ns: int = 0
    looks: dict[bytes, Look] = {}
    """All that is no folder."""
    blobs: dict[bytes, bytes] = {}
    """Contents of files and links."""
    odd: dict[bytes, str] = {}
    """`large <fingerprint>` for a file that is not kept, otherwise what it is, such as `pipe`."""
    folders: dict[bytes, bytes] = {}
    """The tree of each folder in it."""
    unsettled: frozenset[bytes] = frozenset()
    """Files that may have changed after they were read without a sign of it: they are read again."""
    unguarded: dict[bytes, str] = {}
    """What is not covered, and why. A folder's name ends with `/`."""
    gone: frozenset[bytes] = frozenset()
    """Files in an unguarded folder that were known, and do not exist any more."""
    tree: bytes = b""


class Index(msgspec.Struct, array_like=True):
    version: int
    algorithm: str
    since_ns: int
    """When the shadow was begun: older times of change are not kept in snapshots."""
    modes: tuple[int, int, int]
    """The usual modes of files, programs and folders."""
    folders: dict[bytes, IndexedFolder]
    last: Snapshot


_decoder = msgspec.msgpack.Decoder(Index)
_encoder = msgspec.msgpack.Encoder()


def load(path: Path, algorithm: str) -> Index | None:
    try:
        data = read_whole(path, MAX_BYTES)
        index = _decoder.decode(data) if data else None
    except (FileDamaged, msgspec.MsgspecError, RecursionError):
        return None
    return index if index and index.version == VERSION and index.algorithm == algorithm else None


def save(path: Path, index: Index) -> None:
    write_whole(path, _encoder.encode(index))
