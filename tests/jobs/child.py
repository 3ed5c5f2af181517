"""A process of the tests that is killed while it works on a tree: takes snapshots, or rolls back."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import msgspec

from laneway.jobs.rollback.model import Return
from laneway.jobs.rollback.rollbacks import Rollbacks
from laneway.jobs.shadow import Shadow


def snapshots(folder: Path, tree: Path) -> None:
    """Edit and record, for ever; each recorded snapshot is told."""
    number = 0
    while True:
        for file in range(150 if number % 3 == 0 else 2):
            (tree / f"{file}.txt").write_text(f"{number}\n")
        made = Shadow(folder, tree).snapshot()
        print(f"{made.tree} {made.started_at}", flush=True)
        number += 1


def once(folder: Path, tree: Path) -> None:
    """Wait for a word, then record."""
    print("ready", flush=True)
    sys.stdin.readline()
    print(Shadow(folder, tree).snapshot().tree, flush=True)


def rollback(folder: Path, tree: Path) -> None:
    """Carry out what standard input says, and kill ourselves before the step that it names."""
    order = msgspec.json.Decoder(Order).decode(sys.stdin.buffer.read())
    left = order.steps

    def watch(step: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    rollbacks = Rollbacks(folder, tree, watch=watch)
    if order.undo:
        outcome = rollbacks.undo(order.undo)
    else:
        outcome = rollbacks.roll_back(order.returns, Shadow(Path(order.shadow), tree), order.folders)
    print(outcome.ending, order.steps - left, flush=True)


class Order(msgspec.Struct):
    """What the tests want to be rolled back, or undone."""

    steps: int
    shadow: str = ""
    returns: list[Return] = []
    folders: dict[str, int] = {}
    undo: str = ""


if __name__ == "__main__":
    tasks = {"snapshots": snapshots, "once": once, "rollback": rollback}
    tasks[sys.argv[1]](*map(Path, sys.argv[2:]))
