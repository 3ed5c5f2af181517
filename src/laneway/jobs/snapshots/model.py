"""Snapshots of a work tree as values: what lay at a path, what changed, what is not covered.

A path is relative to the work tree, with `/`, as text that can be put into JSON and SQLite whatever
bytes it has (`laneway.jobs.snapshots.paths`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from laneway.base.prepare import prepare

Kind: TypeAlias = Literal["file", "link", "absent", "other"]


@prepare
class PathState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What lies at a path. Two are equal if and only if a reader could not tell them apart."""

    kind: Kind = "absent"
    """`other` is a pipe, a socket, a device, or a file that we may not read. A folder is `absent`."""
    mode: int = 0
    """Of a file: all permission bits. Zero for a link."""
    blob: str = ""
    """The id of the content, or of a link's target; empty where it is not kept."""
    fingerprint: str = ""
    """Of a file too large to be kept; for `other`, what it is."""
    size: int = 0
    """Of a file whose content is not kept."""

    @property
    def is_kept(self) -> bool:
        """Whether this state can be made again: nothing is needed for it, or its content is stored."""
        return self.kind == "absent" or bool(self.blob)


ABSENT = PathState()


@prepare
class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One path that is not the same in two snapshots."""

    path: str
    before: PathState
    after: PathState
    changed_at: float | None = None
    """By the file system's clock. Unknown for what is gone, or came with its folder."""
    latest: float | None = None
    """Where `changed_at` is unknown: a time at or after the last change, if there is one."""


@prepare
class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """A work tree at one moment. The content is in the shadow repository, by the id of a git tree."""

    tree: str
    started_at: float
    """Seconds since 1970; a change after this may be missing."""
    ended_at: float
    steady_at: float = 0.0
    """When it was started by a clock that nobody sets, which begins anew with the machine; 0: unknown."""
    head: str = ""
    """The commit that was checked out; none before the first."""
    files: int = 0
    unguarded: int = 0
    """Files and folders that are not covered, such as `node_modules`: `Shadow.unguarded` names them."""


@prepare
class Unguarded(msgspec.Struct, frozen=True):
    """A file or a folder (its path ends with `/`) of which no change is seen and nothing is kept."""

    path: str
    why: str
    """`ignored`, `too large`, `too many`, `too deep`, `too many repositories`, `unreadable` or `ours`."""


class Beside(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a git tree cannot hold. Stored as a blob beside the tree of files. Folders end with `/`."""

    version: int = 1
    file_mode: int = 0o644
    program_mode: int = 0o755
    folder_mode: int = 0o755
    """The usual modes; `modes` has all others."""
    modes: dict[str, int] = {}
    large: dict[str, tuple[str, int]] = {}
    """Fingerprint and size of files whose content is not kept."""
    other: dict[str, str] = {}
    """What is neither file, link nor folder, or cannot be read."""
    unguarded: dict[str, str] = {}
    gone: tuple[str, ...] = ()
    """Files in unguarded folders that were known before, and do not exist any more."""
    times: dict[str, int] = {}
    """Time of the last change of files and folders, in nanoseconds, where it is not older than the shadow."""
