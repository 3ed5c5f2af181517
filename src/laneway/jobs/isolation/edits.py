"""What a job changed apart from the user's tree, as a value; its contents go into the shadow of that tree."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from laneway.base.prepare import prepare
from laneway.jobs.shadow import PATIENCE_S, Shadow
from laneway.jobs.snapshots.model import ABSENT, Change, PathState, Unguarded
from laneway.jobs.snapshots.objects import Objects
from laneway.jobs.snapshots.reading import LARGE, Taken
from laneway.jobs.snapshots.work_tree import work_tree
from laneway.store.files import make_folder
from laneway.store.gates import gate

NEW_REPOSITORY = "new repository"
"""Why git's own folder in a repository that the job made is not merged."""


@prepare
class Edits(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of it, against the snapshot that is the job's baseline."""

    changes: tuple[Change, ...] = ()
    """By path. Their contents are in the shadow of the user's tree, but for large files."""
    new_folders: dict[str, int] = {}
    """Folders that the job made, each with a slash at its end, and their modes."""
    removed_folders: tuple[str, ...] = ()
    """Folders of the baseline that are not there any more."""
    left_out: tuple[Unguarded, ...] = ()
    """What the job changed and is not merged, such as ignored folders, and why."""
    git_writes: tuple[str, ...] = ()
    """What it wrote to git's own: files, or references. Never merged: a breach of the worker's contract."""
    source: str = ""
    """The folder where the job's files lie."""


@contextmanager
def store_of(shadow: Shadow) -> Iterator[Objects]:
    """The contents of a shadow, to add some; they are on disk when the block has ended."""
    facts = work_tree(shadow.tree)
    make_folder(shadow.folder)
    with gate(shadow.folder / "gate", patience_s=PATIENCE_S):
        objects = Objects(shadow.folder / "repository", facts.algorithm, (facts.objects,))
        objects.prepare()
        yield objects
        objects.flush()


def state_of(taken: Taken | None) -> PathState:
    """What was read, as a snapshot tells it."""
    if taken is None:
        return ABSENT
    mode, size = stat.S_IMODE(taken.look[0]), taken.look[1]
    if taken.odd.startswith(LARGE):
        return PathState("file", mode, fingerprint=taken.odd.removeprefix(LARGE), size=size)
    if taken.odd:
        return PathState("other", mode, fingerprint=taken.odd)
    if stat.S_ISLNK(taken.look[0]):
        return PathState("link", blob=taken.blob.hex())
    return PathState("file", mode, blob=taken.blob.hex())
