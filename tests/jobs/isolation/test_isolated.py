"""Both ways side by side: the same edits give the same changes, and the same tree when they are merged."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.jobs.isolation.isolated import Isolated, as_original, isolated, why_not
from laneway.jobs.isolation.merge import Merges
from laneway.jobs.isolation.removal import remove
from laneway.jobs.snapshots.model import Change
from tests.jobs.isolation.support import linux_only, need_overlay
from tests.jobs.trees import Thing, Tree, things

ROUNDS = 100 if os.environ.get("LANEWAY_CHAOS") else 2
EDITOR = """
import errno, os, random, shutil, sys
chance = random.Random(int(sys.argv[1]))
NAMES = ["a", "b", "c", "d", ".gitignore", "x.log", "caf\\udce9", "new\\nline", "out"]

def path():
    return os.path.join(*(chance.choice(NAMES) for _ in range(chance.randrange(1, 4))))

def content():
    letter = bytes([chance.randrange(65, 91)])
    return chance.choice([b"", b"one\\n", b"two\\n" * 50, b"\\0bin", b"crlf\\r\\n"]) + letter

def write(name):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "wb").write(b"*.log\\nout/\\n" if name.endswith(".gitignore") else content())

def remove(name):
    shutil.rmtree(name) if os.path.isdir(name) and not os.path.islink(name) else os.unlink(name)

def link(name):
    os.symlink(chance.choice(["a", "nowhere", "/nonexistent/x"]), name)

def mode(name):
    os.chmod(name, chance.choice([0o644, 0o600, 0o755]) if os.path.isfile(name) else 0o700)

def move(name):
    target = path()
    try:
        os.rename(name, target)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        if os.path.isdir(target):  # a folder of the tree below is copied, as mv does it
            os.rmdir(target)
        shutil.copytree(name, target, symlinks=True)
        shutil.rmtree(name)

def append(name):
    open(name, "ab").write(content())

for _ in range(int(sys.argv[2])):
    try:
        chance.choice([write, write, write, append, remove, link, mode, move])(path())
    except OSError:
        pass
"""


def scribble(tree: Tree, seed: int, *, number: int = 60) -> None:
    subprocess.run([sys.executable, "-c", EDITOR, str(seed), str(number)], cwd=tree.root, check=True)


def work(job: Isolated, seed: int) -> None:
    place = job.place_of(job.tree)
    words = job.wrap([sys.executable, "-c", EDITOR, str(seed), "60"], place)
    subprocess.run(words, cwd=place, check=True)


def without_times(changes: tuple[Change, ...]) -> dict[str, tuple[object, object]]:
    return {change.path: (change.before, change.after) for change in changes}


def seen(tree: Tree) -> dict[bytes, Thing]:
    """Without folders: empty ones are nobody's change."""
    return {path: thing for path, thing in things(tree.root).items() if thing.kind != 0o040000}


@pytest.mark.covers("J-a2.22")
@linux_only
def test_random_edits_are_the_same_in_both_and_in_the_tree_after_the_merge(tmp_path: Path) -> None:
    """What git ignores, too: files, folders, rules that the job itself has written."""
    first = random.randrange(2**32)
    for round_ in range(ROUNDS):
        seed = first + round_
        tree = Tree(tmp_path, name=f"tree-{round_}")
        scribble(tree, seed, number=80)
        subprocess.run(["git", "add", "--all"], cwd=tree.root, check=True, capture_output=True)
        tree.git("commit", "--quiet", "--message", "all")
        scribble(tree, seed + 1000, number=20)
        state = tmp_path / f"state-{round_}"
        need_overlay(tree.root, state)
        baseline = tree.snapshot(is_baseline=True)
        jobs = [isolated("overlay", tree.root, state / "one"), isolated("worktree", tree.root, state / "two")]
        before = things(tree.root)
        edits = []
        for job in jobs:
            missing = job.begin(tree.shadow, baseline)
            if missing:
                break  # what is not in the copy cannot be edited there
            work(job, seed + 2000)
            edits.append(job.read(tree.shadow, baseline))
        assert things(tree.root) == before, f"seed {seed}"
        if len(edits) == 2:
            assert without_times(edits[0].changes) == without_times(edits[1].changes), f"seed {seed}"
            merges = Merges(state / "merges", tree.root)
            merged = merges.merge(edits[0], tree.shadow)
            assert merged.is_done, f"seed {seed}: {merged.sentence}"
            now = tree.shadow.states(tree.snapshot())
            wanted = dict(tree.shadow.states(baseline))
            wanted.update({change.path: change.after for change in edits[0].changes})
            there = {path: state for path, state in wanted.items() if state.kind != "absent"}
            assert {path: state for path, state in now.items() if path in there} == there, f"seed {seed}"
            again = merges.merge(edits[1], tree.shadow)
            assert again.paths == (), f"seed {seed}"
        for job in jobs:
            remove(job.folder)


@pytest.mark.parametrize("kind", ["overlay", "worktree"])
def test_paths_of_a_worker_are_paths_of_the_tree(tree: Tree, tmp_path: Path, kind: str) -> None:
    """Whatever it calls them."""
    job = isolated(kind, tree.root, tmp_path / "work")  # type: ignore[arg-type]
    place = job.place_of(str(tree.root / "src" / "b.txt"))
    assert as_original(job, place) == str(tree.root / "src" / "b.txt")
    assert as_original(job, "src/b.txt") == "src/b.txt"
    assert as_original(job, "/etc/passwd") == "/etc/passwd"


def test_a_copy_is_always_possible(tree: Tree, tmp_path: Path) -> None:
    assert why_not("worktree", tree.root, tmp_path) == ""
