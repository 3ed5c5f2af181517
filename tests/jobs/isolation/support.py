"""What tests of isolation share: programs that run in an overlay as a worker would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from laneway.jobs.isolation.edits import Edits
from laneway.jobs.isolation.overlay import Overlay, available
from laneway.jobs.isolation.removal import remove
from laneway.jobs.isolation.worktree import Copy
from laneway.jobs.snapshots.model import Snapshot
from tests.jobs.trees import Tree

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def need_overlay(tree: Path, near: Path) -> None:
    """Skip aloud where this machine cannot mount one."""
    if why := available(tree, near):
        pytest.skip(why)


class Layered:
    """A tree with the layer of one job."""

    def __init__(self, tree: Tree, folder: Path, baseline: Snapshot) -> None:
        self.tree = tree
        self.overlay = Overlay.of(tree.root, folder)
        self.baseline = baseline

    def begin(self) -> None:
        assert self.overlay.begin(self.tree.shadow, self.baseline) == ()

    def sh(self, script: str, *, cwd: str = "", check: bool = True) -> str:
        """Run a script for which the tree is covered."""
        words = self.overlay.wrap(["bash", "-c", script], str(self.tree.root / cwd))
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if check:
            assert ran.returncode == 0, ran.stderr
        return ran.stdout + ran.stderr

    def python(self, script: str) -> str:
        words = self.overlay.wrap([sys.executable, "-c", script], str(self.tree.root))
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def edits(self) -> Edits:
        return self.overlay.read(self.tree.shadow, self.baseline)

    def changed(self) -> dict[str, tuple[bytes | str, bytes | str]]:
        """Path → what lay there before and now."""
        return {change.path: self.tree.both(change) for change in self.edits().changes}


@contextmanager
def layered(tree: Tree, folder: Path) -> Iterator[Layered]:
    folder.parent.mkdir(exist_ok=True)
    need_overlay(tree.root, folder.parent)
    made = Layered(tree, folder, tree.snapshot(is_baseline=True))
    made.begin()
    try:
        yield made
    finally:
        remove(folder)
        assert not folder.exists()


class Copied:
    """A tree and the copy for one job."""

    def __init__(self, tree: Tree, folder: Path) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.tree = tree
        self.baseline: Snapshot = tree.snapshot(is_baseline=True)
        self.copy = Copy.of(tree.root, folder)
        self.missing = self.copy.begin(tree.shadow, self.baseline)
        self.top = self.copy.top

    def changed(self) -> dict[str, tuple[bytes | str, bytes | str]]:
        return {change.path: self.tree.both(change) for change in self.edits().changes}

    def edits(self) -> Edits:
        return self.copy.read(self.tree.shadow, self.baseline)

    def git(self, *words: str, inside: str = "") -> str:
        return looked(self.top / inside, *words)


def looked(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout
