"""A process of the tests that is killed while it works on a tree: takes snapshots, or rolls back."""

from __future__ import annotations

import sys
from pathlib import Path

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


if __name__ == "__main__":
    {"snapshots": snapshots, "once": once}[sys.argv[1]](*map(Path, sys.argv[2:]))
