"""Real work trees for the tests of snapshots and rollbacks, and what lies in them, byte for byte."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from laneway.jobs.rollback.model import Outcome, Return, Step
from laneway.jobs.rollback.rollbacks import Rollbacks
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.model import Change, PathState, Snapshot
from tests.doors.acp.repos import Repo


class Tree(Repo):
    """A repository and the shadow of its work tree."""

    def __init__(self, root: Path, *, name: str = "tree") -> None:
        super().__init__(root / name)
        self.shadow = Shadow(root / f"{name}-shadow", self.root)
        self.rollbacks = Rollbacks(root / f"{name}-rollbacks", self.root)

    def snapshot(self, *, is_baseline: bool = False) -> Snapshot:
        return self.shadow.snapshot(is_baseline=is_baseline)

    def since(self, before: Snapshot) -> dict[str, tuple[bytes | str, bytes | str]]:
        """What was changed since then: path → what lay there before and now."""
        changes = self.shadow.changes(before, self.snapshot())
        return {change.path: self.both(change) for change in changes}

    def returns(self, before: Snapshot, after: Snapshot | None = None) -> list[Return]:
        """All that changed, to be given back."""
        changes = self.shadow.changes(before, after or self.snapshot())
        return [Return(change.path, (Step(change.before, change.after),)) for change in changes]

    def roll_back(
        self, before: Snapshot, after: Snapshot | None = None, *, may_merge: bool = False
    ) -> Outcome:
        """Give back all that changed between two snapshots, or since one."""
        folders = self.shadow.folders(before)
        return self.rollbacks.roll_back(
            self.returns(before, after), self.shadow, folders, may_merge=may_merge
        )

    def both(self, change: Change) -> tuple[bytes | str, bytes | str]:
        return self.told(change.before), self.told(change.after)

    def told(self, state: PathState) -> bytes | str:
        """Its content; otherwise what it is."""
        return self.shadow.read(state) if state.blob else state.fingerprint or state.kind

    def write_mode(self, name: str, content: str | bytes, mode: int) -> Path:
        path = self.write(name, content)
        path.chmod(mode)
        return path


class Thing(msgspec.Struct, frozen=True):
    """A file, link or folder as it lies on disk."""

    kind: int
    mode: int
    content: bytes = b""


def things(root: Path) -> dict[bytes, Thing]:
    """All that lies in a tree but for git's own: modes, contents, links, empty folders."""
    found: dict[bytes, Thing] = {}
    top = os.fsencode(root)
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != b".git"]
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
            content = b""
            if kind == stat.S_IFLNK:
                content, mode = os.readlink(path), 0
            elif kind == stat.S_IFREG:
                content = Path(os.fsdecode(path)).read_bytes()
            if name != b".git":
                found[os.path.relpath(path, top)] = Thing(kind, mode, content)
    return found


def git_files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a repository's own folder, with its times: to see that nothing was written."""
    own = root / ".git"
    return {
        str(path.relative_to(own)): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(own.rglob("*"))
    }
