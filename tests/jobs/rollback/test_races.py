"""Somebody writes, or swaps folders for links, in the middle of a rollback."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from laneway.jobs.rollback import names
from laneway.jobs.rollback.model import Outcome, Refusal
from laneway.jobs.rollback.rollbacks import Rollbacks
from laneway.jobs.snapshots.model import Snapshot
from tests.jobs.rollback.everything import edit_everything, litter, make_everything
from tests.jobs.trees import Tree, things

Deed = Callable[[], object]


class Killed(BaseException):
    """Ends a rollback as a crash would, in the middle."""


def watched(tree: Tree, before: Snapshot, step: str, deed: Deed) -> Outcome:
    """A rollback during which something is done before one of its steps."""
    seen: list[str] = []

    def watch(now: str) -> None:
        seen.append(now)
        if now == step:
            deed()

    after = tree.snapshot()
    tree.rollbacks = Rollbacks(tree.rollbacks.folder, tree.root, watch=watch)
    try:
        return tree.roll_back(before, after)
    finally:
        assert step in seen, seen
        tree.rollbacks = Rollbacks(tree.rollbacks.folder, tree.root)


@pytest.fixture
def edited(tree: Tree) -> Snapshot:
    """The snapshot before a job that edited three files, deleted one, and made one."""
    for name in ("b", "c", "gone"):
        tree.write(name, "old\n")
    before = tree.snapshot()
    for name in ("a.txt", "b", "c", "src/b.txt"):
        tree.write(name, "by the job\n")
    (tree.root / "gone").unlink()
    tree.write("new/x", "new\n")
    return before


STEPS = [
    "kept",
    "journal",
    "prepare b",
    "put b",
    "exchanged b",
    "put c",
    "remove new/x",
    "moved new/x",
]


@pytest.mark.covers("J-a2.20")
@pytest.mark.parametrize("step", STEPS)
def test_a_person_who_saves_meanwhile_loses_nothing(tree: Tree, edited: Snapshot, step: str) -> None:
    """Nothing is given back, the path is named, and what the person wrote is there."""
    there = things(tree.root)
    tree.write("c", "by a person\n")
    person = things(tree.root)
    tree.write("c", "by the job\n")
    outcome = watched(tree, edited, step, lambda: tree.write("c", "by a person\n"))
    assert outcome.refused == (Refusal("c", "edited"),)
    assert things(tree.root) == person != there
    assert litter(tree) == []


def aside_of(tree: Tree, path: str) -> Path:
    """Where the new file of a path waits, and where the old one lies later."""
    (record,) = [record for record in tree.rollbacks.records() if record.outcome is None]
    (operation,) = [item for item in record.journal.operations if item.path == path]
    return tree.root / operation.aside


@pytest.mark.parametrize("step", ["put b", "exchanged b"])
def test_a_person_who_replaces_the_very_file_at_the_very_moment(
    tree: Tree, edited: Snapshot, step: str
) -> None:
    """What was displaced is compared, and put back."""

    def write_it() -> None:
        path = tree.root / "b" if step == "put b" else aside_of(tree, "b")
        path.write_text("by a person\n")

    outcome = watched(tree, edited, step, write_it)
    assert outcome.refused == (Refusal("b", "edited"),)
    assert (tree.root / "b").read_text() == "by a person\n"
    assert (tree.root / "c").read_text() == "by the job\n"
    assert litter(tree) == []


def test_an_editor_that_still_writes_to_the_displaced_file_loses_nothing(
    tree: Tree, edited: Snapshot
) -> None:
    """It had the file open. What it wrote is kept beside, and named."""
    outcome = watched(tree, edited, "committed", lambda: aside_of(tree, "b").write_text("late\n"))
    assert outcome.ending == "done"
    (refusal,) = outcome.refused
    assert (refusal.path, refusal.why) == ("b", "edited")
    assert (tree.root / refusal.detail.removeprefix("kept as ")).read_text() == "late\n"
    assert (tree.root / "b").read_text() == "old\n"


def test_an_edit_of_what_was_given_back_already_stays(tree: Tree, edited: Snapshot) -> None:
    """Its turn was over."""
    outcome = watched(tree, edited, "put gone", lambda: tree.write("c", "by a person\n"))
    assert outcome.ending == "done"
    assert (tree.root / "c").read_text() == "by a person\n"
    assert (tree.root / "b").read_text() == "old\n"


def test_a_file_that_appears_where_one_is_made_again_is_not_overwritten(tree: Tree, edited: Snapshot) -> None:
    """Nor one that is written into a folder that would be removed."""
    outcome = watched(tree, edited, "put gone", lambda: tree.write("gone", "by a person\n"))
    assert outcome.refused == (Refusal("gone", "edited"),)
    assert (tree.root / "gone").read_text() == "by a person\n"
    assert (tree.root / "b").read_text() == "by the job\n"
    (tree.root / "gone").unlink()
    outcome = watched(tree, edited, "rmdir new", lambda: tree.write("new/person", "by a person\n"))
    assert outcome.ending == "done"
    assert os.listdir(tree.root / "new") == ["person"]


@pytest.mark.covers("J-a2.18")
@pytest.mark.parametrize(
    ("folder", "step"),
    [
        ("src", "kept"),
        ("src", "journal"),
        ("src", "prepare src/b.txt"),
        ("src", "put src/b.txt"),
        ("src", "exchanged src/b.txt"),
        ("new", "kept"),
        ("new", "journal"),
        ("new", "remove new/x"),
        ("new", "moved new/x"),
    ],
)
def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(
    tree: Tree, edited: Snapshot, tmp_path: Path, step: str, folder: str
) -> None:
    """What lies outside is as it was, whenever it happens."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("b.txt", "x"):
        (outside / name).write_text("by the job\n")
    before = things(outside)

    def swap() -> None:
        (tree.root / folder).rename(tmp_path / "moved")
        (tree.root / folder).symlink_to(outside)

    outcome = watched(tree, edited, step, swap)
    assert things(outside) == before
    assert (tree.root / folder).is_symlink()
    done = {"given up": "by the job\n", "done": "old\n"}
    assert (tree.root / "c").read_text() == done.get(outcome.ending, "by the job\n")


@pytest.mark.covers("J-a2.18")
def test_a_link_in_the_place_of_a_folder_is_refused_from_the_start(
    tree: Tree, edited: Snapshot, tmp_path: Path
) -> None:
    """A job may have made it."""
    after = tree.snapshot()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("by the job\n")
    shutil.rmtree(tree.root / "src")
    (tree.root / "src").symlink_to(outside)
    outcome = tree.roll_back(edited, after)
    assert outcome.refused == (Refusal("src/b.txt", "edited"),)
    assert (outside / "b.txt").read_text() == "by the job\n"


@pytest.mark.parametrize("step", ["prepare b", "put b", "mkdir folder", "remove new/x", "rmdir new"])
def test_a_disk_that_is_full_leaves_everything_as_it_was(tree: Tree, edited: Snapshot, step: str) -> None:
    """New files are written before any old one is touched; putting back needs no space."""
    shutil.rmtree(tree.root / "src")
    tree.write("folder/x", "x")
    before = tree.snapshot()
    for name in ("b", "c"):
        tree.write(name, "again\n")
    shutil.rmtree(tree.root / "folder")
    tree.write("new/x", "new\n")
    (tree.root / "new").rename(tree.root / "newer")
    (tree.root / "newer").rename(tree.root / "new")
    tree.write("new/deep/y", "y\n")
    (tree.root / "new/x").unlink()
    step = {"remove new/x": "remove new/deep/y", "rmdir new": "rmdir new/deep"}.get(step, step)
    there = things(tree.root)

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    outcome = watched(tree, before, step, fail)
    assert outcome.ending == "given up"
    assert [refusal.why for refusal in outcome.refused] == ["failed"]
    assert things(tree.root) == there
    assert litter(tree) == []


@pytest.mark.parametrize("step", [*STEPS[2:], "put gone", "committed"])
def test_an_edit_between_a_crash_and_the_next_look_is_not_lost(
    tree: Tree, edited: Snapshot, step: str
) -> None:
    """Either it was made before that path's turn: then all is put back. Or after it: then it stays, too."""

    def crash() -> None:
        raise Killed

    with pytest.raises(Killed):
        watched(tree, edited, step, crash)
    tree.write("b", "by a person\n")
    (outcome,) = tree.rollbacks.recover()
    assert (tree.root / "b").read_text() == "by a person\n"
    assert litter(tree) == []
    others = {name: (tree.root / name).read_text() for name in ("a.txt", "c", "src/b.txt")}
    if outcome.ending == "done":
        assert others == {"a.txt": "one\n", "c": "old\n", "src/b.txt": "two\n"}
    else:
        assert outcome.refused == (Refusal("b", "edited"),)
        assert set(others.values()) == {"by the job\n"}


def test_a_person_who_takes_the_edits_back_after_a_crash_is_no_obstacle(tree: Tree, edited: Snapshot) -> None:
    """Also while a new file was half-written."""

    def crash() -> None:
        raise Killed

    with pytest.raises(Killed):
        watched(tree, edited, "prepare c", crash)
    (tree.root / f"{next(tree.root.glob('.laneway-*'))}.part").write_text("half")
    for name in ("b", "c"):
        tree.write(name, "old\n")
    (outcome,) = tree.rollbacks.recover()
    assert outcome.ending == "done"
    assert (tree.root / "c").read_text() == "old\n"


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EINVAL])
def test_a_system_that_cannot_exchange_names_does_the_next_best_thing(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """Everything works there, too."""
    monkeypatch.setattr(names, "_system_call", lambda: lambda one, other, flags: error)
    make_everything(tree)
    before = tree.snapshot()
    baseline = things(tree.root)
    edit_everything(tree)
    there = things(tree.root)
    outcome = tree.roll_back(before)
    assert outcome.ending == "done"
    assert things(tree.root) == baseline
    tree.rollbacks.undo(outcome.rollback_id)
    assert things(tree.root) == there
    tree.write("x", "x")

    def fail() -> None:
        raise OSError(errno.EIO, "input/output error")

    assert watched(tree, before, "put was-link", fail).ending == "given up"
    (tree.root / "x").unlink()
    assert things(tree.root) == there
    assert litter(tree) == []
