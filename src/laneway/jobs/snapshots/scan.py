"""One walk through a work tree: what lies there now, reading only what may have changed.

Everything is relative to open folders, so no link is followed. Git's own folder is left out in every
repository; a repository inside the tree is walked with its own rules of what is ignored. Whatever was
known before stays known, also when a rule ignores it later: a rule must hide no change.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Mapping

from laneway.base.errors import TreeRefused
from laneway.jobs.snapshots.beneath import FOLDER, NO_WAY, Look, look_of
from laneway.jobs.snapshots.ignored import IgnoredPaths
from laneway.jobs.snapshots.index import IndexedFolder
from laneway.jobs.snapshots.objects import Objects
from laneway.jobs.snapshots.paths import GIT
from laneway.jobs.snapshots.reading import Taken, take

MAX_FILES = 300_000
"""Of a tree. With more, a snapshot would take seconds each time and a gigabyte of memory."""
MAX_DEPTH = 100
"""Folders within each other: each is an open descriptor, and macOS allows 256."""
MAX_REPOSITORIES = 64
"""Within the tree. Git is asked about each, every time: 25 ms."""
MAX_IGNORED_BYTES = 1024 * 1024
"""Of a file that git ignores: settings such as `.env`, not results of a build."""
MAX_IGNORED = 1000

_CODEC = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
_FORMAT = 0o170000
_FOLDER = stat.S_IFDIR
NOTHING = IndexedFolder()
OURS = "ours"
"""Why a folder is left out in which Laneway, or Codex, keeps what is its own: also what was known in it."""

RulesOf = Callable[[bytes], IgnoredPaths | None]
"""Asks git what is ignored in a repository inside the tree, by its path."""


class TreeScan:
    """One snapshot's walk. `folders` has the result, by path."""

    def __init__(
        self,
        old: Mapping[bytes, IndexedFolder],
        objects: Objects,
        rules_of: RulesOf,
        *,
        lent: Collection[str] = (),
        ours: Collection[bytes] = (),
        keeps_known: bool = True,
    ) -> None:
        """`lent` are contents that need not be stored, `ours` folders of Laneway and of Codex.

        Without `keeps_known`, ignored files that earlier snapshots knew have no precedence.
        """
        self.folders: dict[bytes, IndexedFolder] = {}
        self.files = 0
        self.is_changed = False
        self._old = old
        self._objects = objects
        self._rules_of = rules_of
        self._lent = lent
        self._ours = ours
        self._keeps_known = keeps_known
        self._repositories = 0
        self._ignored_left = MAX_IGNORED
        self._empty = bytes.fromhex(objects.add("tree", b""))

    def run(self, root: int, rules: IgnoredPaths) -> None:
        self._count_known(rules)
        self._walk(root, b"", rules, 0)
        self.files = sum(len(folder.looks) for folder in self.folders.values())
        self.is_changed |= self._old.keys() != self.folders.keys()

    # ── folders ────────────────────────────────────────────────────────────

    def _walk(self, fd: int, path: bytes, rules: IgnoredPaths, depth: int) -> bytes:
        old = self._old.get(path, NOTHING)
        new = self._new(fd)
        names, is_repository = self._list(fd, new.looks)
        if is_repository and path:
            rules = self._rules_within(path) or rules
        self._leave_ignored(new, old, rules.files.get(path, ()))
        for name in names:
            self._enter(fd, path, name, new, rules, depth + 1)
        return self._finish(fd, path, new, old)

    def _new(self, fd: int) -> IndexedFolder:
        status = os.fstat(fd)
        return IndexedFolder(
            mode=stat.S_IMODE(status.st_mode),
            changed_ns=status.st_ctime_ns,
            looks={},
            blobs={},
            odd={},
            folders={},
            unguarded={},
        )

    def _list(self, fd: int, looks: dict[bytes, Look]) -> tuple[list[bytes], bool]:
        """Fill in the files; the names of the folders, and whether git has something here."""
        folders: list[bytes] = []
        is_repository = False
        with os.scandir(fd) as entries:
            for entry in entries:
                name = entry.name.encode(*_CODEC)  # as `os.fsencode`, which takes a fifth of all time
                if name == GIT:
                    is_repository = True
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # gone since it was listed
                if status.st_mode & _FORMAT == _FOLDER:
                    folders.append(name)
                else:  # as in `look_of`, which would cost a fifth more time
                    looks[name] = (
                        status.st_mode,
                        status.st_size,
                        status.st_mtime_ns,
                        status.st_ctime_ns,
                        status.st_ino,
                    )
        self.files += len(looks)
        if self.files > MAX_FILES:
            raise TreeRefused(f"The work tree has more than {MAX_FILES:,} files that git does not ignore.")
        return folders, is_repository

    def _enter(
        self, fd: int, path: bytes, name: bytes, new: IndexedFolder, rules: IgnoredPaths, depth: int
    ) -> None:
        below = path + b"/" + name if path else name
        why = OURS if below in self._ours else "too deep" if depth > MAX_DEPTH else ""
        try:
            inner = os.open(name, FOLDER, dir_fd=fd)
        except PermissionError:
            new.unguarded[name + b"/"] = "unreadable"
            new.folders[name] = self._empty
            return
        except OSError as problem:
            if problem.errno not in NO_WAY:
                raise
            return  # removed, or replaced by a link, since it was listed
        try:
            why = why or self._why_not(inner, below, rules)
            if why:
                new.unguarded[name + b"/"] = why
                new.folders[name] = self._empty if why == OURS else self._walk_known(inner, below)
            else:
                new.folders[name] = self._walk(inner, below, rules, depth)
        except PermissionError:  # it can be opened, but not be searched
            new.unguarded[name + b"/"] = "unreadable"
            new.folders[name] = self._empty
        finally:
            os.close(inner)

    def _why_not(self, fd: int, path: bytes, rules: IgnoredPaths) -> str:
        """Why a folder is not covered; empty if it is. A repository is, also where git ignores it."""
        if not _has_git(fd):
            return "ignored" if path in rules.folders else ""
        self._repositories += 1
        return "too many repositories" if self._repositories > MAX_REPOSITORIES else ""

    def _walk_known(self, fd: int, path: bytes) -> bytes:
        """In a folder that is not covered, look only at the files that were known before."""
        old = self._old.get(path, NOTHING) if self._keeps_known else NOTHING
        new = self._new(fd)
        gone: set[bytes] = set()
        for name in (*old.looks, *old.gone):
            try:
                status = os.stat(name, dir_fd=fd, follow_symlinks=False) if b"/" not in name else None
            except OSError:
                status = None
            if status is None or stat.S_ISDIR(status.st_mode):
                gone.add(name)
            else:
                new.looks[name] = look_of(status)
        for name in old.folders:
            below = path + b"/" + name
            try:
                inner = os.open(name, FOLDER, dir_fd=fd)
            except OSError:
                gone.update(self._known_below(below, name))
                continue
            try:
                new.folders[name] = self._walk_known(inner, below)
            finally:
                os.close(inner)
        new.gone = frozenset(gone)
        self.files += len(new.looks)
        return self._finish(fd, path, new, old)

    def _known_below(self, path: bytes, name: bytes) -> Iterator[bytes]:
        """The files that were known in a folder that is gone, relative to the folder it was in."""
        old = self._old.get(path, NOTHING)
        for file in (*old.looks, *old.gone):
            yield name + b"/" + file
        for folder in old.folders:
            yield from self._known_below(path + b"/" + folder, name + b"/" + folder)

    # ── what is ignored ────────────────────────────────────────────────────

    def _rules_within(self, path: bytes) -> IgnoredPaths | None:
        rules = self._rules_of(path)
        if rules is not None:
            self._count_known(rules)
        return rules

    def _count_known(self, rules: IgnoredPaths) -> None:
        """Files that were known keep their places among the ignored ones."""
        if self._keeps_known:
            for folder, names in rules.files.items():
                self._ignored_left -= len(names & self._old.get(folder, NOTHING).looks.keys())

    def _leave_ignored(self, new: IndexedFolder, old: IndexedFolder, names: Collection[bytes]) -> None:
        for name in sorted(names):
            look = new.looks.get(name)
            if look is None or (self._keeps_known and name in old.looks):
                continue
            why = (
                "too large" if look[1] > MAX_IGNORED_BYTES else "too many" if self._ignored_left <= 0 else ""
            )
            if why:
                del new.looks[name]
                new.unguarded[name] = why
            else:
                self._ignored_left -= 1

    # ── contents ───────────────────────────────────────────────────────────

    def _finish(self, fd: int, path: bytes, new: IndexedFolder, old: IndexedFolder) -> bytes:
        """Read what is new, and make the folder's tree."""
        if new.looks == old.looks and not old.unsettled:
            new.blobs, new.odd = old.blobs, old.odd
        else:
            self._take_changed(fd, new, old)
        new.tree = self._tree(new, old)
        self.folders[path] = new
        if new != old:
            self.is_changed = True
        return new.tree

    def _take_changed(self, fd: int, new: IndexedFolder, old: IndexedFolder) -> None:
        unsettled: set[bytes] = set()
        for name, look in list(new.looks.items()):
            if name not in old.unsettled and old.looks.get(name) == look:
                taken: Taken | None = Taken(look, old.blobs.get(name, b""), old.odd.get(name, ""))
            else:
                taken = take(fd, name, look, self._store)
            if taken is None:
                del new.looks[name]
                continue
            new.looks[name] = taken.look
            if taken.blob:
                new.blobs[name] = taken.blob
            if taken.odd:
                new.odd[name] = taken.odd
            if not taken.is_settled:
                unsettled.add(name)
        new.unsettled = frozenset(unsettled)

    def _store(self, data: bytes) -> bytes:
        name = self._objects.id_of("blob", data)
        if name not in self._lent:
            self._objects.add("blob", data, name=name)
        return bytes.fromhex(name)

    def _tree(self, new: IndexedFolder, old: IndexedFolder) -> bytes:
        """A git tree; sorted as git does it: a folder's name as if it ended with a slash."""
        if old.tree and new.looks == old.looks and new.blobs == old.blobs and new.folders == old.folders:
            return old.tree
        entries = [(name, _git_mode(new.looks[name][0]), name, blob) for name, blob in new.blobs.items()]
        entries += [(name + b"/", b"40000", name, tree) for name, tree in new.folders.items()]
        entries.sort()
        data = b"".join(b"%s %s\0%s" % (mode, name, content) for _, mode, name, content in entries)
        made = bytes.fromhex(self._objects.id_of("tree", data))
        if made != old.tree:
            self._objects.add("tree", data, name=made.hex())
        return made


def _git_mode(mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return b"120000"
    return b"100755" if mode & 0o100 else b"100644"


def _has_git(fd: int) -> bool:
    try:
        os.stat(GIT, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True
