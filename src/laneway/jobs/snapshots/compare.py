"""What differs between two snapshots, from their trees and what is stored beside them.

A path that one of the two does not cover is no change: what lay there is not known. So a folder that
git ignored once, and does not any more, is not taken for new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from laneway.base.errors import ContentGone
from laneway.jobs.snapshots.beside import ROOT, folder_key, parents_of
from laneway.jobs.snapshots.model import ABSENT, Beside, Change, PathState, Snapshot
from laneway.jobs.snapshots.objects import Objects
from laneway.jobs.snapshots.paths import bytes_of, text_of
from laneway.jobs.snapshots.reading import tick_of

FILES = "files"
BESIDE = "beside"
"""The two entries of a snapshot's tree."""
MAX_LISTED_BYTES = 512 * 1024 * 1024
_LINK = "120000"
_PROGRAM = "100755"

GitEntry = tuple[str, str]
"""Mode and id."""
_decode_beside = msgspec.json.Decoder(Beside).decode


def read_beside(objects: Objects, snapshot: Snapshot) -> Beside:
    try:
        return _decode_beside(objects.read(f"{snapshot.tree}:{BESIDE}"))
    except msgspec.MsgspecError:
        raise ContentGone(snapshot.tree) from None


def compare(objects: Objects, before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """All changes, by path."""
    if before.tree == after.tree:
        return ()
    one, other = _Side(objects, before), _Side(objects, after)
    entries = _differing(objects, before, after)
    paths = {*entries, *_apart(one.beside, other.beside)}
    if any(path not in entries for path in paths) or one.usual != other.usual:
        paths |= _load(one, other)
    changes = []
    for path in sorted(paths):
        mine, theirs = entries.get(path, (None, None))
        states = one.state(path, mine), other.state(path, theirs)
        if states[0] != states[1] and one.covers(path, states[0]) and other.covers(path, states[1]):
            changes.append(_change(path, *states, other.beside.times, before.started_at))
    return tuple(changes)


def states_of(
    objects: Objects, snapshot: Snapshot, paths: Iterable[str] | None = None
) -> dict[str, PathState]:
    """What lay at these paths, or at all that were something."""
    side = _Side(objects, snapshot)
    side.load()
    found = {*side.entries, *side.beside.large, *side.beside.other} if paths is None else paths
    return {path: side.state(path, None) for path in found}


def folders_of(objects: Objects, snapshot: Snapshot) -> dict[str, int]:
    """The folders, each with a slash at its end, and their modes. `/` is the work tree."""
    ran = objects.git(
        "ls-tree", "-r", "-d", "-z", "--full-tree", f"{snapshot.tree}:{FILES}", max_bytes=MAX_LISTED_BYTES
    )
    if ran.exit_code != 0 or ran.is_cut:
        raise ContentGone(snapshot.tree)
    beside = read_beside(objects, snapshot)
    paths = [line.partition(b"\t")[2] for line in ran.stdout.split(b"\0")[:-1]]
    keys = [ROOT, *map(folder_key, paths)]
    return {key: beside.modes.get(key, beside.folder_mode) for key in keys}


class _Side:
    """One of the two snapshots."""

    def __init__(self, objects: Objects, snapshot: Snapshot) -> None:
        self.beside = read_beside(objects, snapshot)
        self.entries: dict[str, GitEntry] = {}
        self._objects = objects
        self._snapshot = snapshot
        self._gone = frozenset(self.beside.gone)

    @property
    def usual(self) -> tuple[int, int]:
        return self.beside.file_mode, self.beside.program_mode

    def load(self) -> None:
        """List all files; needed where modes differ, and ids are not known from the comparison."""
        tree = f"{self._snapshot.tree}:{FILES}"
        ran = self._objects.git("ls-tree", "-r", "-z", "--full-tree", tree, max_bytes=MAX_LISTED_BYTES)
        if ran.exit_code != 0 or ran.is_cut:
            raise ContentGone(self._snapshot.tree)
        for line in ran.stdout.split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, name = facts.decode().split(" ")
            self.entries[text_of(path)] = (mode, name)

    def state(self, path: str, entry: GitEntry | None) -> PathState:
        beside = self.beside
        if path in beside.large:
            print_, size = beside.large[path]
            return PathState("file", beside.modes[path], fingerprint=print_, size=size)
        if path in beside.other:
            return PathState("other", beside.modes[path], fingerprint=beside.other[path])
        entry = entry or self.entries.get(path)
        if entry is None:
            return ABSENT
        if entry[0] == _LINK:
            return PathState("link", blob=entry[1])
        usual = beside.program_mode if entry[0] == _PROGRAM else beside.file_mode
        return PathState("file", beside.modes.get(path, usual), blob=entry[1])

    def covers(self, path: str, state: PathState) -> bool:
        """Whether it is known what lay there. Where something is recorded, it is."""
        if state.kind != "absent" or path in self._gone:
            return True
        unguarded = self.beside.unguarded
        if not unguarded:
            return True
        keys = (path, f"{path}/", *parents_of(path))
        return not any(key in unguarded for key in keys)


def _load(one: _Side, other: _Side) -> set[str]:
    """List both sides; the paths to look at where the usual modes are not the same."""
    one.load()
    other.load()
    return {*one.entries, *other.entries} if one.usual != other.usual else set()


def _differing(
    objects: Objects, before: Snapshot, after: Snapshot
) -> dict[str, tuple[GitEntry | None, GitEntry | None]]:
    trees = (f"{before.tree}:{FILES}", f"{after.tree}:{FILES}")
    ran = objects.git("diff-tree", "-r", "-z", "--no-renames", *trees, max_bytes=MAX_LISTED_BYTES)
    if ran.exit_code != 0 or ran.is_cut:
        raise ContentGone(after.tree)
    words = ran.stdout.split(b"\0")[:-1]
    found: dict[str, tuple[GitEntry | None, GitEntry | None]] = {}
    for facts, path in zip(words[::2], words[1::2], strict=True):
        old_mode, new_mode, old, new, status = facts[1:].decode().split(" ")
        found[text_of(path)] = (
            None if status == "A" else (old_mode, old),
            None if status == "D" else (new_mode, new),
        )
    return found


def _apart(one: Beside, other: Beside) -> set[str]:
    """Files whose modes or fingerprints are not the same beside the two trees."""
    return {
        key
        for mine, theirs in ((one.modes, other.modes), (one.large, other.large), (one.other, other.other))
        for key, _ in _items(mine) ^ _items(theirs)
        if not key.endswith("/")
    }


def _items(facts: Mapping[str, object]) -> set[tuple[str, object]]:
    return set(facts.items())


def _change(
    path: str, before: PathState, after: PathState, times: Mapping[str, int], started_at: float
) -> Change:
    def is_since(changed_ns: int) -> bool:
        return changed_ns + tick_of(changed_ns) >= started_at * 1e9

    at = times.get(path, 0)
    if after.kind != "absent" and is_since(at):
        return Change(path, before, after, changed_at=at / 1e9)
    # What is dated earlier came with its folder. A folder's time tells when names in it, or its own, changed;
    # that of a folder in a file's place, when the file had gone.
    folders = (folder_key(bytes_of(path)), *parents_of(path))
    latest = next((times[key] for key in folders if key in times), 0)
    return Change(path, before, after, latest=latest / 1e9 if is_since(latest) else None)
