"""The shadow repository of one work tree: what lay there at each snapshot, whatever happens to it since.

All is kept in a folder of ours, in git's own format: our objects, our index, our settings. Filters, line
ends, hooks, attributes, monitors and flags of the user's index have no part in it: a file is taken as it
lies on disk. Of the user's repository only contents are read, and nothing is written to it.

Blocking, and for one process at a time: others wait at a gate. A crash leaves the last snapshot whole.

Not seen: what a program writes through a mapping of memory after a snapshot has read the file, until the
system dates it again; changes of a folder's mode, of extended attributes, and of what is unguarded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from laneway.base.errors import TreeRefused
from laneway.base.plain import code_label
from laneway.jobs.snapshots import index as seen
from laneway.jobs.snapshots.beneath import open_root
from laneway.jobs.snapshots.beside import beside_of, usual_modes
from laneway.jobs.snapshots.compare import BESIDE, FILES, compare, folders_of, read_beside, states_of
from laneway.jobs.snapshots.comparisons import Comparisons
from laneway.jobs.snapshots.ignored import IgnoredPaths, ignored_in
from laneway.jobs.snapshots.index import Index
from laneway.jobs.snapshots.model import Change, PathState, Snapshot, Unguarded
from laneway.jobs.snapshots.objects import Objects
from laneway.jobs.snapshots.scan import TreeScan
from laneway.jobs.snapshots.work_tree import WorkTree, work_tree
from laneway.store.files import make_folder
from laneway.store.gates import gate

PATIENCE_S = 120.0
"""To wait for another process's snapshot. The first of a large tree may take a minute on a cold disk."""
MAX_LISTED_BYTES = 512 * 1024 * 1024
_CLOCK_NS = 2_000_000_000
"""Times of change from just before the first snapshot are kept, too."""
_json = msgspec.json.Encoder()


class Shadow:
    """Snapshots of one work tree, kept in one folder."""

    def __init__(self, folder: Path, tree: Path, *, ours: tuple[Path, ...] = ()) -> None:
        """`tree` is the top of a work tree. `ours` are folders of Laneway and of Codex, if they lie in it."""
        self.folder = folder
        self.tree = tree
        self._ours = (folder, *ours)
        self._facts: WorkTree | None = None
        self._comparisons = Comparisons(folder / "comparisons")

    def snapshot(self, *, is_baseline: bool = False) -> Snapshot:
        """Record the tree as it is now. `TreeRefused` where that cannot be done rightly.

        A baseline begins a new run: what git ignores is judged anew, without regard to what was known.
        """
        facts = self._work_tree()
        make_folder(self.folder)
        with gate(self.folder / "gate", patience_s=PATIENCE_S):
            objects = self._objects()
            objects.prepare()
            index = seen.load(self.folder / "index", facts.algorithm)
            if index is not None and objects.missing([index.last.tree], own=True):
                index = None  # somebody removed what it stands for
            return self._record(facts, objects, index, is_baseline=is_baseline)

    def changes(self, before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
        """What differs, by path. Not what is unguarded in one of the two."""
        if before.tree == after.tree:
            return ()
        known = self._comparisons.find(before, after)
        if known is None:
            known = compare(self._objects(), before, after)
            self._comparisons.add(before, after, known)
        return known

    def read(self, state: PathState) -> bytes:
        """The content of a file or the target of a link. `ContentGone` where it is not there any more."""
        return self._objects().read(state.blob)

    def contents(self, states: Iterable[PathState]) -> Iterator[tuple[str, bytes]]:
        """The same for many, with the id of each: much faster than one by one."""
        return self._objects().contents(state.blob for state in states if state.blob)

    def keep(self, changes: Iterable[Change]) -> tuple[str, ...]:
        """Copy what was changed, before and after, out of the user's repository, which may throw it away.

        Paths of which it has thrown something away already.
        """
        paths = {
            state.blob: change.path
            for change in changes
            for state in (change.before, change.after)
            if state.blob
        }
        with gate(self.folder / "gate", patience_s=PATIENCE_S):
            gone = self._objects().keep(sorted(paths))
        return tuple(sorted({paths[blob] for blob in gone}))

    def states(self, snapshot: Snapshot, paths: Iterable[str] | None = None) -> dict[str, PathState]:
        """What lay at these paths, or at all paths."""
        return states_of(self._objects(), snapshot, paths)

    def folders(self, snapshot: Snapshot) -> dict[str, int]:
        """All folders, with a slash at the end, and their modes. `/` is the tree itself."""
        return folders_of(self._objects(), snapshot)

    def unguarded(self, snapshot: Snapshot) -> tuple[Unguarded, ...]:
        """What is not covered, such as ignored folders, and why."""
        beside = read_beside(self._objects(), snapshot)
        return tuple(Unguarded(path, why) for path, why in beside.unguarded.items())

    # ── one snapshot ───────────────────────────────────────────────────────

    def _record(
        self, facts: WorkTree, objects: Objects, index: Index | None, *, is_baseline: bool
    ) -> Snapshot:
        started_ns, steady_at = time.time_ns(), steady_time()
        rules = ignored_in(facts.top)
        if rules is None:
            raise TreeRefused(f"{code_label(str(self.tree))} is not the top of a work tree.", str(self.tree))
        lent = _lent(objects, rules.head) if index is None or is_baseline else frozenset()
        if index is not None and is_baseline:
            _read_unkept_again(objects, index, lent)
        scan = TreeScan(
            index.folders if index else {},
            objects,
            self._rules_within,
            lent=lent,
            ours=self._ours_within(facts.top),
            keeps_known=not is_baseline,
        )
        _walk(scan, facts.top, rules)
        if index is not None and not scan.is_changed and not is_baseline:
            return msgspec.structs.replace(
                index.last,
                started_at=started_ns / 1e9,
                ended_at=time.time(),
                steady_at=steady_at,
                head=rules.head,
            )
        made = Index(
            version=seen.VERSION,
            algorithm=facts.algorithm,
            since_ns=started_ns - _CLOCK_NS if index is None or is_baseline else index.since_ns,
            modes=index.modes if index else usual_modes(scan.folders),
            folders=scan.folders,
            last=Snapshot("", started_ns / 1e9, 0.0, steady_at, rules.head, scan.files),
        )
        return self._store(objects, made)

    def _store(self, objects: Objects, index: Index) -> Snapshot:
        """First the contents, then the index: a crash between the two costs only time."""
        beside = beside_of(index.folders, index.modes, index.since_ns)
        blob = bytes.fromhex(objects.add("blob", _json.encode(beside)))
        files = index.folders[b""].tree
        entries = b"100644 %s\0%s40000 %s\0%s" % (BESIDE.encode(), blob, FILES.encode(), files)
        tree = objects.add("tree", entries)
        objects.flush()
        index.last = msgspec.structs.replace(
            index.last, tree=tree, ended_at=time.time(), unguarded=len(beside.unguarded)
        )
        seen.save(self.folder / "index", index)
        return index.last

    def _work_tree(self) -> WorkTree:
        if self._facts is None:
            facts = work_tree(self.tree)
            if os.fspath(facts.top) != os.path.realpath(self.tree):
                raise TreeRefused(
                    f"{code_label(str(self.tree))} is in the work tree {code_label(str(facts.top))}, "
                    "not the top of one.",
                    str(self.tree),
                )
            self._facts = facts
        return self._facts

    def _objects(self) -> Objects:
        facts = self._work_tree()
        return Objects(self.folder / "repository", facts.algorithm, (facts.objects,))

    def _rules_within(self, path: bytes) -> IgnoredPaths | None:
        """What is ignored in a repository inside the tree; none where git finds none, or not a sound one."""
        try:
            return ignored_in(Path(os.path.join(self._work_tree().top, os.fsdecode(path))), path + b"/")
        except TreeRefused:
            return None

    def _ours_within(self, top: Path) -> frozenset[bytes]:
        real = [os.path.realpath(folder) for folder in self._ours]
        return frozenset(os.fsencode(os.path.relpath(path, top)) for path in real if _is_below(path, top))


def steady_time() -> float:
    """Seconds since the machine was started, also those in which it slept."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _is_below(path: str, top: Path) -> bool:
    return path.startswith(os.path.join(top, ""))


def _walk(scan: TreeScan, top: Path, rules: IgnoredPaths) -> None:
    try:
        root = open_root(top)
        try:
            scan.run(root, rules)
        finally:
            os.close(root)
    except OSError as problem:
        why = problem.strerror or type(problem).__name__
        raise TreeRefused(
            f"The work tree {code_label(str(top))} cannot be read ({why}).", str(top)
        ) from problem


def _read_unkept_again(objects: Objects, index: Index, lent: frozenset[str]) -> None:
    """Contents that the user's commit had once, and has no more: nobody else may have them soon."""
    blobs = {blob.hex() for folder in index.folders.values() for blob in folder.blobs.values()}
    unkept = {bytes.fromhex(name) for name in objects.missing(sorted(blobs - lent), own=True)}
    if unkept:
        for folder in index.folders.values():
            names = frozenset(name for name, blob in folder.blobs.items() if blob in unkept)
            folder.unsettled |= names


def _lent(objects: Objects, head: str) -> frozenset[str]:
    """Contents of the commit that is checked out: reachable in the user's repository, so not stored again."""
    if not head:
        return frozenset()
    ran = objects.git("ls-tree", "-r", "-z", "--full-tree", head, max_bytes=MAX_LISTED_BYTES)
    if ran.exit_code != 0 or ran.is_cut:
        return frozenset()
    facts = (line.partition(b"\t")[0].decode().split(" ") for line in ran.stdout.split(b"\0")[:-1])
    names = frozenset(name for _, kind, name in facts if kind == "blob")
    return names.difference(objects.missing(names))
