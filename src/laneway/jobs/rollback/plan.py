"""Decides what a rollback does, by what lies in the work tree now. Reads the tree, and writes nothing.

A path goes back only if it still holds what the job left, or by a merge that leaves nothing in dispute.
Folders are made where they are needed, and removed where they are new and would be left empty.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from laneway.jobs.rollback.journal import ContentWriter
from laneway.jobs.rollback.model import Operation, Refusal, Return, Step, Why
from laneway.jobs.rollback.present import at_path, place_of
from laneway.jobs.rollback.three_way import MAX_BYTES, merge
from laneway.jobs.snapshots.beneath import NO_WAY, open_file, opened, read_all
from laneway.jobs.snapshots.beside import folder_key
from laneway.jobs.snapshots.model import PathState
from laneway.jobs.snapshots.objects import object_id
from laneway.jobs.snapshots.paths import bytes_of, parts_of, text_of
from laneway.jobs.snapshots.reading import LOOK, UNREADABLE

FOLDER_MODE = 0o755
"""Of a folder that is made again, where its mode was not recorded."""


class ContentSource(Protocol):
    """Where contents come from: the shadow, or an earlier rollback."""

    def has(self, state: PathState) -> bool: ...

    def read(self, state: PathState) -> bytes: ...

    def fill(self, states: Collection[PathState], writer: ContentWriter) -> None: ...


class Folders(msgspec.Struct, frozen=True):
    """What is known of folders from before; each ends with `/`."""

    modes: Mapping[str, int]
    is_new: Callable[[str], bool]
    """Whether a folder may be removed when it is empty: it was not there before."""
    shall: frozenset[str] = frozenset()
    """Folders that shall be there in the end, also empty ones."""


class RollbackPlan(msgspec.Struct, frozen=True):
    operations: tuple[Operation, ...] = ()
    refused: tuple[Refusal, ...] = ()
    made: dict[str, bytes] = {}
    """Contents that a merge made, by id."""
    merged: tuple[str, ...] = ()


def plan(
    root: int,
    returns: Sequence[Return],
    source: ContentSource,
    folders: Folders,
    *,
    algorithm: str,
    rollback_id: str,
    may_merge: bool = False,
) -> RollbackPlan:
    """`root` is the open work tree."""
    targets = [_Target(root, wanted, source, algorithm, may_merge=may_merge) for wanted in returns]
    refused = [target.refusal for target in targets if target.refusal is not None]
    pairs = {
        target.path: (target.old, target.new)
        for target in targets
        if target.refusal is None and target.old != target.new
    }
    layout = _Layout(root, pairs, folders)
    refused += layout.refused
    if refused:
        return RollbackPlan(refused=tuple(sorted(refused, key=lambda refusal: refusal.path)))
    made = {key: data for target in targets for key, data in target.made.items()}
    merged = tuple(target.path for target in targets if target.is_merged and target.path in pairs)
    return RollbackPlan(layout.operations(rollback_id), made=made, merged=merged)


# ── one path ───────────────────────────────────────────────────────────────


class _Target:
    """A path: what it holds, and what it shall hold."""

    def __init__(
        self, root: int, wanted: Return, source: ContentSource, algorithm: str, *, may_merge: bool
    ) -> None:
        self.path = wanted.path
        self.refusal: Refusal | None = None
        self.made: dict[str, bytes] = {}
        self.is_merged = False
        self._root = root
        self._source = source
        self._algorithm = algorithm
        self._may_merge = may_merge
        try:
            parts_of(wanted.path)
        except ValueError:
            self.refusal = Refusal(wanted.path, "name")
            return
        self.old = at_path(root, wanted.path, algorithm)
        self.new = self.old
        if wanted.steps and self.old == wanted.steps[0].before:
            return  # somebody was faster
        for step in reversed(wanted.steps):
            if self.refusal is None:
                self._take_back(step)
        if self.refusal is None:
            self._check()

    def _take_back(self, step: Step) -> None:
        if self.new == step.after:
            self.new = step.before
            return
        merged = self._merge(step) if self._may_merge else None
        if merged is None:
            self.refusal = Refusal(self.path, _unreadable_or(self.new, "edited"))
            return
        self.new = merged
        self.is_merged = True

    def _merge(self, step: Step) -> PathState | None:
        """What others changed since stays, and only the step is taken back."""
        states = (step.after, self.new, step.before)
        if any(state.kind != "file" or not state.blob for state in states):
            return None
        if self.new.mode not in (step.after.mode, step.before.mode) and step.after.mode != step.before.mode:
            return None
        mode = step.before.mode if self.new.mode == step.after.mode else self.new.mode
        after, current, before = (self._content(state) for state in states)
        if after is None or current is None or before is None:
            return None
        data = current if after == before else merge(after, current, before)
        if data is None:
            return None
        key = object_id("blob", data, self._algorithm)
        self.made[key] = data
        return PathState("file", mode, blob=key)

    def _content(self, state: PathState) -> bytes | None:
        if state.blob in self.made:
            return self.made[state.blob]
        return _read(self._root, self.path) if state == self.old else self._source.read(state)

    def _check(self) -> None:
        """Whether the way there, and the way back by an undo, are open."""
        if self.old == self.new:
            return
        if self.old.kind == "other":
            self.refusal = Refusal(self.path, _unreadable_or(self.old, "special"))
        elif self.old.fingerprint.startswith(LOOK):
            self.refusal = Refusal(self.path, "too large")
        elif self.new.kind == "other":
            self.refusal = Refusal(self.path, "special")
        elif self.new.kind != "absent" and self.new.blob not in self.made and not self._source.has(self.new):
            self.refusal = Refusal(self.path, "not kept")


def _unreadable_or(state: PathState, why: Why) -> Why:
    return "unreadable" if state.fingerprint == UNREADABLE else why


def _read(root: int, path: str) -> bytes | None:
    try:
        with place_of(root, path) as (folder, name):
            fd = open_file(folder, name)
            try:
                return read_all(fd, MAX_BYTES)
            finally:
                os.close(fd)
    except OSError:
        return None


# ── folders, and the order of things ───────────────────────────────────────


class _Layout:
    """Which folders are made and removed for these paths, and what stands in the way."""

    def __init__(self, root: int, pairs: Mapping[str, tuple[PathState, PathState]], folders: Folders) -> None:
        self.refused: list[Refusal] = []
        self._root = root
        self._pairs = {bytes_of(path): states for path, states in pairs.items()}
        self._folders = folders
        self._removed = {
            path for path, (old, new) in self._pairs.items() if old.kind != "absent" and new.kind == "absent"
        }
        self._put = {path for path, (_, new) in self._pairs.items() if new.kind != "absent"}
        self._needed = {above for path in self._put for above in _above(path)}
        self._leaving = self._find_leaving()
        self._missing: dict[bytes, int] = {}
        for path in sorted(self._put):
            self._make_way(path)
        for key in sorted(folders.shall):
            self._make_folder(bytes_of(key.removesuffix("/")))

    def operations(self, rollback_id: str) -> tuple[Operation, ...]:
        removes = sorted(self._removed)
        puts = sorted(self._put)
        asides = {
            path: text_of(self._aside(path, f".laneway-{rollback_id}-{number}".encode()))
            for number, path in enumerate((*removes, *puts))
        }
        return (
            *(Operation("remove", text_of(path), *self._pairs[path], asides[path]) for path in removes),
            *(
                Operation("rmdir", text_of(path), mode=self._leaving[path])
                for path in sorted(self._leaving, key=_depth, reverse=True)
            ),
            *(Operation("mkdir", text_of(path), mode=self._missing[path]) for path in sorted(self._missing)),
            *(Operation("put", text_of(path), *self._pairs[path], asides[path]) for path in puts),
        )

    def _find_leaving(self) -> dict[bytes, int]:
        """Folders that are empty when the files are gone, and were not there before; their modes."""
        candidates = {
            above
            for path in self._removed
            for above in _above(path)
            if above not in self._needed and self._folders.is_new(folder_key(above))
        }
        for path in self._put:
            candidates.update(self._folders_at(path))
        leaving: dict[bytes, int] = {}
        for folder in sorted(candidates, key=_depth, reverse=True):
            names, mode = self._listing(folder)
            inside = {folder + b"/" + name for name in names or ()}
            if names is not None and inside <= self._removed | leaving.keys():
                leaving[folder] = mode
        return leaving

    def _folders_at(self, path: bytes) -> Iterator[bytes]:
        """The folder that lies where a file shall lie, and all in it: empty, they stand in nobody's way."""
        mode = self._mode(path)
        if mode is not None and stat.S_ISDIR(mode):
            yield path
            for name in self._listing(path)[0] or ():
                yield from self._folders_at(path + b"/" + name)

    def _make_way(self, path: bytes) -> None:
        """Find the folders that are missing above a path; refuse if something else is there."""
        for folder in _above(path):
            mode = self._mode(folder)
            if mode is None or folder in self._removed:
                self._missing[folder] = self._folders.modes.get(folder_key(folder), FOLDER_MODE)
            elif not stat.S_ISDIR(mode):
                self.refused.append(Refusal(text_of(path), "folder", detail=text_of(folder)))
                return
        mode = self._mode(path)
        if mode is not None and stat.S_ISDIR(mode) and path not in self._leaving:
            self.refused.append(Refusal(text_of(path), "folder"))

    def _make_folder(self, path: bytes) -> None:
        """One that shall be there; unless something else is, which is left alone."""
        for folder in (*_above(path), path):
            mode = self._mode(folder)
            if mode is None or folder in self._removed:
                self._missing[folder] = self._folders.modes.get(folder_key(folder), FOLDER_MODE)
            elif not stat.S_ISDIR(mode):
                return

    def _aside(self, path: bytes, name: bytes) -> bytes:
        """A place for a file that waits: in the nearest folder that is there and stays."""
        for folder in reversed(_above(path)):
            if folder not in self._missing and folder not in self._leaving:
                return folder + b"/" + name
        return name

    def _mode(self, path: bytes) -> int | None:
        """What lies there; a folder behind a link is no folder of this tree."""
        try:
            with place_of(self._root, text_of(path)) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except OSError as problem:
            if problem.errno in NO_WAY:
                return None
            raise

    def _listing(self, path: bytes) -> tuple[list[bytes] | None, int]:
        try:
            with opened(self._root, path.split(b"/")) as fd:
                return [os.fsencode(name) for name in os.listdir(fd)], stat.S_IMODE(os.fstat(fd).st_mode)
        except OSError:
            return None, 0


def _above(path: bytes) -> list[bytes]:
    """The folders that a path is in, the topmost first, without the tree itself."""
    parts = path.split(b"/")
    return [b"/".join(parts[:place]) for place in range(1, len(parts))]


def _depth(path: bytes) -> tuple[int, bytes]:
    return path.count(b"/"), path
