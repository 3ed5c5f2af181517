"""Isolates a write job from the user's tree by an overlay or by a copy, behind one interface. Blocking.

    begin      makes what the worker needs, from the job's baseline; tells what of the tree is not there
    place_of   where the worker has what lies at a path of the tree
    wrap       the words to start it with, under a guardian as ever
    read       what it changed, when every process of it is gone
    source     where the worker's files lie, for a person to look at
    remove     `laneway.jobs.isolation.removal`, of the folder; until then all of it can be looked at

The user's tree is changed by `laneway.jobs.isolation.merge` only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from laneway.jobs.isolation.edits import Edits
from laneway.jobs.isolation.overlay import Overlay, available
from laneway.jobs.isolation.worktree import Copy
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.model import Snapshot, Unguarded

Apart: TypeAlias = Literal["overlay", "worktree"]


class Isolated(Protocol):
    """One job's own view of a work tree. `shadow` is always that of the user's tree."""

    @property
    def folder(self) -> Path: ...

    @property
    def tree(self) -> str: ...

    @property
    def source(self) -> Path: ...

    def begin(self, shadow: Shadow, baseline: Snapshot) -> tuple[Unguarded, ...]: ...

    def place_of(self, path: str) -> str: ...

    def wrap(self, argv: Sequence[str], cwd: str) -> list[str]: ...

    def read(self, shadow: Shadow, baseline: Snapshot) -> Edits: ...


def isolated(kind: Apart, tree: Path, work: Path) -> Isolated:
    """`work` is the job's folder for it (`JobPlaces.work`). `TreeRefused` if the tree cannot have it."""
    return Overlay.of(tree, work) if kind == "overlay" else Copy.of(tree, work)


def why_not(kind: Apart, tree: Path, near: Path, codex_home: str = "") -> str:
    """Why this machine cannot do it for this tree, as a sentence; empty if it can.

    `near` is a folder on the file system where `work` will be.
    """
    return available(tree, near, codex_home) if kind == "overlay" else ""


def as_original(isolated_: Isolated, text: str) -> str:
    """A path that a worker named, as a path of the user's tree, if it lies in the copy."""
    top = isolated_.place_of(isolated_.tree)
    inside = os.path.relpath(text, top) if os.path.isabs(text) else os.pardir
    outside = inside == os.pardir or inside.startswith(os.pardir + os.sep)
    return text if outside else os.path.normpath(os.path.join(isolated_.tree, inside))
