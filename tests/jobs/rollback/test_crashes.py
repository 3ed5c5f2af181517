"""Rollbacks that are cut off anywhere, in real processes, and finished at the next look."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from laneway.jobs.snapshots.model import Snapshot
from tests.jobs.child import Order
from tests.jobs.rollback.everything import edit_everything, litter, make_everything
from tests.jobs.trees import Thing, Tree, things

CHILD = Path(__file__).parent.parent / "child.py"
ROUNDS = 300 if os.environ.get("LANEWAY_CHAOS") else 10
NEVER = 10_000


def start(tree: Tree) -> subprocess.Popen[bytes]:
    words = [sys.executable, str(CHILD), "rollback", str(tree.rollbacks.folder), str(tree.root)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def child(tree: Tree, order: Order) -> tuple[int, bytes]:
    """Runs until it is done, or kills itself: how it ended, and what it said."""
    with start(tree) as process:
        said, _ = process.communicate(msgspec.json.encode(order))
    return process.returncode, said


def order(tree: Tree, before: Snapshot, after: Snapshot, steps: int) -> Order:
    """All that changed, given back."""
    return Order(
        steps,
        str(tree.shadow.folder),
        tree.returns(before, after),
        tree.shadow.folders(before),
    )


def recovered(tree: Tree, where: str) -> dict[bytes, Thing]:
    """What lies in the tree after the next look. A second look finds nothing to do."""
    tree.rollbacks.recover()
    assert tree.rollbacks.recover() == (), where
    assert litter(tree) == [], where
    assert all(record.outcome is not None for record in tree.rollbacks.records()), where
    return things(tree.root)


@pytest.mark.covers("J-a2.17")
@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_rollback_killed_before_any_step_is_finished_or_was_never_begun(tmp_path: Path) -> None:
    """Of whatever kind the changes are; and so is an undo that is killed."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    tree = Tree(tmp_path)
    make_everything(tree)
    before = tree.snapshot()
    baseline = things(tree.root)
    edit_everything(tree)
    after = tree.snapshot()
    edited = things(tree.root)
    ending, total = child(tree, order(tree, before, after, NEVER))[1].split()
    assert ending == b"done"
    (first,) = tree.rollbacks.records()
    assert child(tree, Order(NEVER, undo=first.journal.rollback_id))[1].startswith(b"done")
    for round_ in range(ROUNDS):
        steps = chance.randrange(1, int(total) + 1)
        where = f"seed {seed}, round {round_}, step {steps}"
        assert child(tree, order(tree, before, after, steps))[0] == -signal.SIGKILL, where
        now = recovered(tree, where)
        assert now in (edited, baseline), where
        if now == edited:
            assert steps <= 2, where  # before the journal was on disk
            continue
        last = tree.rollbacks.records()[-1].journal.rollback_id
        steps = chance.randrange(1, int(total) + 1)
        where = f"{where}, undo {steps}"
        assert child(tree, Order(steps, undo=last))[0] == -signal.SIGKILL, where
        if recovered(tree, where) != edited:
            assert things(tree.root) == baseline, where
            assert tree.rollbacks.undo(last).ending == "done", where
        assert things(tree.root) == edited, where


@pytest.mark.covers("J-a2.17")
@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_rollback_killed_at_any_instant(tmp_path: Path) -> None:
    """From outside, in the middle of our own steps."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    tree = Tree(tmp_path)
    for number in range(60):
        tree.write(f"{number % 7}/{number}", f"{number}\n" * 2000)
    before = tree.snapshot()
    baseline = things(tree.root)
    for number in range(0, 60, 2):
        tree.write(f"{number % 7}/{number}", "edited\n" * number)
        tree.write(f"new/{number}", "new\n")
    after = tree.snapshot()
    edited = things(tree.root)
    wanted = order(tree, before, after, NEVER)
    for round_ in range(max(ROUNDS // 2, 4)):
        where = f"seed {seed}, round {round_}"
        with start(tree) as process:
            assert process.stdin is not None
            process.stdin.write(msgspec.json.encode(wanted))
            process.stdin.close()
            wait_for_a_trace(tree, process, chance)
            for _ in range(chance.randrange(100_000)):
                pass  # so that the kill falls anywhere
            process.kill()
        now = recovered(tree, where)
        (record,) = tree.rollbacks.records() or (None,)
        assert now == (edited if record is None else baseline), where
        if record is not None:
            assert tree.rollbacks.undo(record.journal.rollback_id).ending == "done", where
        assert things(tree.root) == edited, where
        shutil.rmtree(tree.rollbacks.folder)


def wait_for_a_trace(tree: Tree, process: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Until the rollback has begun: its contents, its journal, its first file aside, its first exchange."""
    traces: tuple[tuple[Path, str], ...] = (
        (tree.rollbacks.folder, "*/contents"),
        (tree.rollbacks.folder, "*/journal.json"),
        (tree.root, "*/.laneway-*.part"),
        (tree.root, "*/.laneway-*"),
        (tree.rollbacks.folder, "*/committed"),
    )
    folder, trace = chance.choice(traces)
    while process.poll() is None and not any(folder.glob(trace)):
        pass
