"""What a job wrote into its layer, told as changes against the job's baseline. Reads the layer; blocking.

Exact: nothing but the job's own processes writes there. A path that the baseline knows is a change if it is
not the same any more; a new one as far as a snapshot would record it. All else is named as left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from laneway.base.errors import TreeRefused
from laneway.jobs.isolation.edits import NEW_REPOSITORY, Edits, state_of, store_of
from laneway.jobs.isolation.git_own import index_is_same
from laneway.jobs.isolation.ignoring import Ignoring
from laneway.jobs.isolation.listing import LayerListing, folders_above, joined
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.beneath import open_root, opened
from laneway.jobs.snapshots.beside import ROOT, folder_key
from laneway.jobs.snapshots.model import ABSENT, Change, PathState, Snapshot, Unguarded
from laneway.jobs.snapshots.objects import Objects
from laneway.jobs.snapshots.paths import bytes_of, text_of
from laneway.jobs.snapshots.reading import take
from laneway.jobs.snapshots.scan import MAX_IGNORED, MAX_IGNORED_BYTES

OBJECTS = b"objects/"


class Layers(msgspec.Struct, frozen=True):
    """Where the layers of a job lie."""

    tree: str
    """The work tree; links resolved."""
    uppers: dict[str, Path]
    """By the folder that is covered: the tree, and git's own if that lies outside of it."""
    git_dir: str
    index: Path
    """A copy of git's index as it was at the start, if there was one."""


def read_layers(layers: Layers, shadow: Shadow, baseline: Snapshot) -> Edits:
    """`shadow` is that of the user's tree; the contents that the job has left are stored in it."""
    source = layers.uppers[layers.tree]
    upper = open_root(source)
    try:
        listing = LayerListing(upper)
        reading = _Reading(layers, upper, listing, shadow, baseline)
        with store_of(shadow) as objects:
            changes = reading.changes(objects)
        git_writes = (*reading.git_writes(), *_writes_outside(layers, shadow))
        return Edits(
            changes=changes,
            new_folders=reading.new_folders(),
            removed_folders=reading.removed_folders(),
            left_out=reading.left_out(),
            git_writes=git_writes,
            source=os.fspath(source),
        )
    except OSError as problem:
        raise TreeRefused(f"The job's layer cannot be read ({problem.strerror}).", layers.tree) from problem
    finally:
        os.close(upper)


class _Reading:
    """One layer beside one snapshot."""

    def __init__(
        self, layers: Layers, upper: int, listing: LayerListing, shadow: Shadow, baseline: Snapshot
    ) -> None:
        self._layers = layers
        self._upper = upper
        self._listing = listing
        self._shadow = shadow
        self._known = {bytes_of(path): state for path, state in shadow.states(baseline).items()}
        self._folders = {_bytes_of_key(key) for key in shadow.folders(baseline)} - {b""}
        self._unguarded = {bytes_of(item.path.removesuffix("/")): item for item in shadow.unguarded(baseline)}
        self._left_out: dict[str, Unguarded] = {}

    # ── files ──────────────────────────────────────────────────────────────

    def changes(self, objects: Objects) -> tuple[Change, ...]:
        kept = self._kept()
        after = self._read(
            [path for path in self._listing.files if path in self._known or path in kept], objects
        )
        for path in self._known:
            # One that gave way to a folder that is left out is as little merged as that.
            if path not in after and self._listing.hides(path) and folder_key(path) not in self._left_out:
                after[path] = ABSENT
        changes = (
            Change(text_of(path), self._known.get(path, ABSENT), state) for path, state in after.items()
        )
        return tuple(
            sorted((item for item in changes if item.before != item.after), key=lambda item: item.path)
        )

    def _kept(self) -> set[bytes]:
        """New files that a snapshot would record."""
        new: set[bytes] = set()
        for path in self._listing.files:
            if path not in self._known and not self._is_unguarded(path):
                new.add(path)
        within, ignored = Ignoring(self._shadow.tree, self._upper, self._listing).judge(new)
        for folder in within.values():
            self._leave_out(folder_key(folder), "ignored")
        kept = new - within.keys()
        number = 0
        for path in sorted(ignored):
            size = self._listing.files[path][1]
            why = "too large" if size > MAX_IGNORED_BYTES else "too many" if number >= MAX_IGNORED else ""
            if why:
                self._leave_out(text_of(path), why)
                kept.remove(path)
            number += not why
        return kept

    def _is_unguarded(self, path: bytes) -> bool:
        """Whether the baseline does not cover it; then it is left out."""
        for place in (*folders_above(path), path):
            if place in self._unguarded:
                self._leave_out(self._unguarded[place].path, self._unguarded[place].why)
                return True
        return False

    def _read(self, paths: Iterable[bytes], objects: Objects) -> dict[bytes, PathState]:
        by_folder: dict[bytes, list[bytes]] = {}
        for path in paths:
            folder, _, name = path.rpartition(b"/")
            by_folder.setdefault(folder, []).append(name)
        states = {}
        for folder, names in by_folder.items():
            with opened(self._upper, folder.split(b"/") if folder else []) as fd:
                for name in names:
                    path = joined(folder, name)
                    taken = take(fd, name, self._listing.files[path], lambda data: _add(objects, data))
                    states[path] = state_of(taken)
        return states

    # ── folders ────────────────────────────────────────────────────────────

    def new_folders(self) -> dict[str, int]:
        return {
            folder_key(folder): mode
            for folder, mode in self._listing.folders.items()
            if folder not in self._folders
        }

    def removed_folders(self) -> tuple[str, ...]:
        listing = self._listing
        return tuple(
            sorted(
                folder_key(folder)
                for folder in self._folders
                if folder not in listing.folders and listing.hides(folder)
            )
        )

    def left_out(self) -> tuple[Unguarded, ...]:
        """To be called last."""
        for path, item in self._unguarded.items():
            if path not in self._listing.folders and self._listing.hides(path):
                self._leave_out(item.path, item.why)
        return tuple(item for _, item in sorted(self._left_out.items()))

    def _leave_out(self, path: str, why: str) -> None:
        self._left_out[path] = Unguarded(path, why)

    # ── git's own ──────────────────────────────────────────────────────────

    def git_writes(self) -> tuple[str, ...]:
        """In repositories of the user's tree. Those in new ones are left out."""
        found: list[bytes] = []
        for dot_git, names in self._listing.git.items():
            if not os.path.lexists(os.path.join(self._layers.tree, os.fsdecode(dot_git))):
                self._leave_out(f"{text_of(dot_git)}/", NEW_REPOSITORY)
                continue
            written = [joined(dot_git, name) if name else dot_git for name in names]
            found += _without_looks(self._layers, self._layers.tree, written, self._shadow)
        return tuple(text_of(path) for path in sorted(found))


def _without_looks(layers: Layers, covered: str, paths: Iterable[bytes], shadow: Shadow) -> set[bytes]:
    """Of what was written to git's own, what is more than a look: `git status` writes the index, too.

    Contents are one path, however many there are.
    """
    found: set[bytes] = set()
    for path in paths:
        before, objects, _ = path.rpartition(OBJECTS)
        if objects:
            found.add(before + objects)
        elif path.rpartition(b"/")[2] != b"index" or not _is_look(layers, covered, path, shadow):
            found.add(path)
    return found


def _is_look(layers: Layers, covered: str, path: bytes, shadow: Shadow) -> bool:
    """Whether an index holds what it held: now, or when the job began."""
    name = os.fsdecode(path)
    own = layers.uppers[covered] / name
    users = os.path.join(covered, name)
    is_trees = users == os.path.join(layers.git_dir, "index")
    return index_is_same(shadow.folder, Path(users), own) or (
        is_trees and index_is_same(shadow.folder, layers.index, own)
    )


def _writes_outside(layers: Layers, shadow: Shadow) -> tuple[str, ...]:
    """In the repository of a linked work tree, or of a submodule."""
    found: list[str] = []
    for covered, upper in layers.uppers.items():
        if covered == layers.tree:
            continue
        names = _without_looks(layers, covered, _names(upper), shadow)
        found += [os.path.join(covered, os.fsdecode(name)) for name in names]
    return tuple(text_of(os.fsencode(path)) for path in sorted(found))


def _names(upper: os.PathLike[str]) -> list[bytes]:
    root = open_root(upper)
    try:
        listing = LayerListing(root)
    finally:
        os.close(root)
    return [*listing.files, *listing.gone]


def _add(objects: Objects, data: bytes) -> bytes:
    return bytes.fromhex(objects.add("blob", data))


def _bytes_of_key(key: str) -> bytes:
    return b"" if key == ROOT else bytes_of(key[:-1])
