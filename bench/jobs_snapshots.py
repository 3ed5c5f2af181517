"""Benchmark of snapshots of a work tree, by its size: the first, a repeated one, one with a change.

Each snapshot is taken in a process of its own, as supervisors do, so that it loads what the last one knew.
The base is what git itself needs to say what has changed in the same tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.jobs_server import new_repository, plain_git
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section, middle, spread_of
from laneway.jobs.shadow import Shadow

SIZES = (1_000, 50_000)
REPEATED_S = Goal(0.5, of="ours")
GIT = "git status"
Run = dict[str, float]


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 1 if quick else 5
    rows: list[Row] = []
    samples: dict[str, object] = {}
    for size in SIZES[:1] if quick else SIZES:
        with TemporaryDirectory(dir=rig.work) as folder:
            runs = _runs(rig, Path(folder), size, rounds)
        samples[f"{size} files"] = runs
        goal = REPEATED_S if size == SIZES[-1] else None
        rows += [
            _row(runs, f"snapshot of {size:,} files, the first", "first", None),
            _row(runs, f"snapshot of {size:,} files, repeated", "again", goal),
            _row(runs, f"snapshot of {size:,} files, one changed", "changed", goal),
            _row(runs, "the same, CPU time alone", "changed cpu", None),
            Row(
                what="kept on disk after the first",
                unit="MB",
                base=middle(runs, lambda run: run["tree_mb"]),
                base_is="the files",
                ours=middle(runs, lambda run: run["mb"]),
                digits=1,
            ),
        ]
    note = (
        f"Snapshots: medians of {rounds} rounds, each with a new shadow repository, and the lowest and"
        " highest ratio to git in the same round. All files are committed, and small."
    )
    return Section("Jobs: snapshots of a work tree", rows, [note], samples)


def _row(runs: list[Run], what: str, name: str, goal: Goal | None) -> Row:
    return Row(
        what=what,
        unit="s",
        base=middle(runs, lambda run: run["git"]),
        base_is=GIT,
        ours=middle(runs, lambda run: run[name]),
        goal=goal,
        digits=3,
        spread=spread_of([run[name] / run["git"] for run in runs]),
    )


def _runs(rig: Rig, folder: Path, size: int, rounds: int) -> list[Run]:
    tree = new_repository(folder / "tree", size)
    _status(tree)
    return [_round(rig, tree, folder / f"shadow-{number}", number) for number in range(rounds)]


def _round(rig: Rig, tree: Path, shadow: Path, number: int) -> Run:
    def take() -> Run:
        taken: Run = rig.measure("bench.jobs_snapshots", tree, shadow)
        return taken

    first = take()
    again = take()
    git_s = _status(tree)
    (tree / "folder-0" / "file-0.txt").write_text(f"changed {number}\n")
    changed = take()
    if len({first["tree"], again["tree"]}) != 1 or changed["tree"] == again["tree"]:
        raise RuntimeError("the snapshots do not show what was changed")
    return {
        "first": first["s"],
        "again": again["s"],
        "changed": changed["s"],
        "changed cpu": changed["cpu_s"],
        "git": git_s,
        "mb": _size_mb(shadow),
        "tree_mb": sum(path.stat().st_size for path in tree.glob("folder-*/*")) / 1e6,
    }


def _status(tree: Path) -> float:
    """Seconds of `git status` with all untracked files; the user's index is not written."""
    argv = ["git", "--no-optional-locks", "status", "--porcelain", "--untracked-files=all"]
    before = time.perf_counter()
    subprocess.run(argv, cwd=tree, env=plain_git(), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - before


def _size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def snapshot(tree: Path, shadow: Path) -> dict[str, object]:
    before, cpu_before = time.perf_counter(), _cpu_s()
    taken = Shadow(shadow, tree).snapshot()
    return {"s": time.perf_counter() - before, "cpu_s": _cpu_s() - cpu_before, "tree": taken.tree}


def _cpu_s() -> float:
    """Of this process and of git, which it runs."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    tell(snapshot(Path(sys.argv[1]), Path(sys.argv[2])))
