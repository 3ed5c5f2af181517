"""A copy of a work tree for one job: its baseline, byte for byte, with a repository of its own.

What had not been committed is there, and what git does not track; of what git ignores only the small files
that a snapshot has. `node_modules` and the like are not: `Copy.begin` names them. Nothing is written to the
user's repository or tree.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from laneway.base.errors import TreeRefused
from laneway.base.plain import code_label
from laneway.jobs.isolation.edits import Edits, store_of
from laneway.jobs.isolation.files import Files
from laneway.jobs.isolation.own_repository import make_own_repository, writes_to_own
from laneway.jobs.isolation.removal import remove
from laneway.jobs.isolation.seed import seed
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.beside import ROOT, parents_of
from laneway.jobs.snapshots.model import PathState, Snapshot, Unguarded
from laneway.jobs.snapshots.paths import bytes_of
from laneway.jobs.snapshots.scan import MAX_REPOSITORIES
from laneway.jobs.snapshots.work_tree import work_tree
from laneway.store.files import make_folder, read_whole, trouble, write_whole

MAX_SNAPSHOT_BYTES = 64 * 1024
START = "start.json"
_decode_snapshot = msgspec.json.Decoder(Snapshot).decode


class Copy(msgspec.Struct, frozen=True):
    """The copy of one job. The folder lies outside of the tree and has nothing else in it."""

    folder: Path
    tree: str
    """The original; links resolved."""

    @classmethod
    def of(cls, tree: Path, folder: Path) -> Copy:
        return cls(folder, os.path.realpath(tree))

    @property
    def top(self) -> Path:
        """The copy itself. Its name is that of the original: some programs go by it."""
        return self.folder / "tree" / (os.path.basename(self.tree) or "root")

    @property
    def source(self) -> Path:
        return self.top

    @property
    def shadow(self) -> Shadow:
        return Shadow(self.folder / "shadow", self.top)

    def begin(self, shadow: Shadow, baseline: Snapshot) -> tuple[Unguarded, ...]:
        """Make the copy; what an earlier attempt left is removed. Returns what is in the tree and not in it.

        `shadow` is that of the original.
        """
        remove(self.folder)
        started_ns = time.time_ns()
        try:
            make_folder(self.top)
            states, unguarded = shadow.states(baseline), shadow.unguarded(baseline)
            folders = _without_empty(shadow.folders(baseline), unguarded, states)
            with Files(self.top, Path(self.tree)) as files:
                files.make_folders(folders)
                files.make_files(states, shadow)
                self._make_repositories(folders)
                files.set_modes(folders)
            own = self.shadow
            seed(own.folder, work_tree(self.top).algorithm, files.written, started_ns)
            write_whole(self.folder / START, msgspec.json.encode(own.snapshot()))
        except OSError as problem:
            raise trouble(self.folder, problem) from problem
        special = (
            Unguarded(path, state.fingerprint) for path, state in states.items() if state.kind == "other"
        )
        return (*unguarded, *special)

    def place_of(self, path: str) -> str:
        """Where a path of the original lies in the copy; `TreeRefused` for one that is not in the tree."""
        inside = os.path.relpath(os.path.realpath(path), self.tree)
        if inside == os.pardir or inside.startswith(os.pardir + os.sep):
            raise TreeRefused(f"{code_label(path)} is not in {code_label(self.tree)}.", path)
        return os.path.normpath(os.path.join(self.top, inside))

    def wrap(self, argv: Sequence[str], cwd: str) -> list[str]:
        """The words of a program that works in the copy: these."""
        return list(argv)

    def read(self, shadow: Shadow, baseline: Snapshot) -> Edits:
        """What the job changed. `shadow` is that of the original: what the job has left is stored in it."""
        own = self.shadow
        start = self._start()
        end = own.snapshot()
        changes = own.changes(start, end)
        with store_of(shadow) as objects:
            for name, data in own.contents(change.after for change in changes):
                objects.add("blob", data, name=name)
        folders = own.folders(start), own.folders(end)
        were_unguarded = set(own.unguarded(start))
        return Edits(
            changes=changes,
            new_folders={key: mode for key, mode in folders[1].items() if key not in folders[0]},
            removed_folders=tuple(sorted(folders[0].keys() - folders[1].keys())),
            left_out=tuple(item for item in own.unguarded(end) if item not in were_unguarded),
            git_writes=writes_to_own(self.top, own.folder),
            source=os.fspath(self.top),
        )

    def _start(self) -> Snapshot:
        data = read_whole(self.folder / START, MAX_SNAPSHOT_BYTES)
        if data is None:
            raise TreeRefused("The copy for the job was not finished.", os.fspath(self.top))
        return _decode_snapshot(data)

    def _make_repositories(self, folders: Mapping[str, int]) -> None:
        """Also of repositories inside the tree, as far as they are sound."""
        make_own_repository(Path(self.tree), self.top)
        for inside in list(self._repositories(folders))[:MAX_REPOSITORIES]:
            try:
                make_own_repository(Path(self.tree, inside), self.top / inside)
            except TreeRefused:
                pass  # git finds none there either

    def _repositories(self, folders: Mapping[str, int]) -> Iterator[str]:
        for key in folders:
            inside = os.fsdecode(bytes_of(key[:-1])) if key != ROOT else ""
            if inside and os.path.lexists(os.path.join(self.tree, inside, ".git")):
                yield inside


def _without_empty(
    folders: Mapping[str, int], unguarded: Sequence[Unguarded], states: Mapping[str, PathState]
) -> dict[str, int]:
    """Without folders of which nothing is known but that they are there: an empty one would deceive."""
    within = {key for path in states for key in parents_of(path)}
    empty = {item.path for item in unguarded} - within
    return {key: mode for key, mode in folders.items() if key not in empty}
