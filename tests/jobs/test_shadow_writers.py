"""Several processes at one shadow, and processes that are killed in the middle of a snapshot."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.base.errors import StoreError
from laneway.jobs import shadow
from laneway.jobs.snapshots.model import Snapshot
from laneway.store.gates import gate
from tests.jobs.trees import Tree

ROUNDS = 100 if os.environ.get("LANEWAY_CHAOS") else 6
CHILD = Path(__file__).with_name("child.py")


def start(word: str, tree: Tree) -> subprocess.Popen[str]:
    words = [sys.executable, str(CHILD), word, str(tree.shadow.folder), str(tree.root)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(words, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def contents(tree: Tree, snapshot: Snapshot) -> dict[str, bytes]:
    states = tree.shadow.states(snapshot)
    found = dict(tree.shadow.contents(states.values()))
    return {path: found[state.blob] for path, state in states.items()}


def test_processes_that_record_at_once_wait_for_each_other(tree: Tree) -> None:
    """All of them see the same tree."""
    for number in range(200):
        tree.write(f"{number}.txt", f"{number}")
    children = [start("once", tree) for _ in range(4)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    answers = {child.communicate("go\n")[0] for child in children}
    assert answers == {f"{tree.snapshot().tree}\n"}


def test_nobody_waits_for_ever(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped in the middle holds up no other one without end."""
    monkeypatch.setattr(shadow, "PATIENCE_S", 0.05)
    tree.snapshot()
    with gate(tree.shadow.folder / "gate"), pytest.raises(StoreError, match="has held"):
        tree.snapshot()


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_kill_in_the_middle_leaves_the_last_snapshot_whole(tmp_path: Path) -> None:
    """And the next one is right, whatever half-written things lie about."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    tree = Tree(tmp_path)
    for round_ in range(ROUNDS):
        where = f"seed {seed}, round {round_}"
        with start("snapshots", tree) as child:
            assert child.stdout is not None
            lines = [child.stdout.readline() for _ in range(chance.randrange(1, 4))]
            for _ in range(chance.randrange(60_000)):
                pass  # so that the kill falls anywhere
            child.kill()
            lines += [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        tree_id, started_at = lines[-1].split()
        last = Snapshot(tree_id, float(started_at), float(started_at))
        recorded = contents(tree, last)
        assert len(recorded) == 150, where
        now = {path.name: path.read_bytes() for path in tree.root.glob("*.txt")}
        made = tree.snapshot()
        assert contents(tree, made) == now, where
        assert {change.path for change in tree.shadow.changes(last, made)} == {
            path for path in now if recorded[path] != now[path]
        }, where
