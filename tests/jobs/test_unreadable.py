"""Files and folders that we may not read, or not write."""

from __future__ import annotations

import pytest

from laneway.base.errors import TreeRefused
from laneway.jobs.rollback.model import Refusal
from tests.jobs.capabilities import modes_hold
from tests.jobs.trees import Tree, things


def test_what_cannot_be_read_is_noted(tree: Tree) -> None:
    """A file is known by that; a folder is not covered, and what was in it is no change."""
    tree.write_mode("secret", "x", 0o000)
    tree.write("closed/x.txt", "x")
    tree.write("listed/x.txt", "x")
    with modes_hold():
        before = tree.snapshot()
        assert tree.told(tree.shadow.states(before)["secret"]) == "unreadable"
        (tree.root / "closed").chmod(0o000)
        (tree.root / "listed").chmod(0o400)
        (tree.root / "a.txt").chmod(0o000)
        after = tree.snapshot()
        assert {left.path: left.why for left in tree.shadow.unguarded(after)} == {
            "closed/": "unreadable",
            "listed/": "unreadable",
        }
        changes = tree.shadow.changes(before, after)
        assert [change.path for change in changes] == ["a.txt"]
        assert tree.both(changes[0]) == (b"one\n", "unreadable")
        outcome = tree.roll_back(before, after)
        assert outcome.refused == (Refusal("a.txt", "unreadable"),)
        (tree.root / "closed").chmod(0o755)
        (tree.root / "listed").chmod(0o755)


def test_a_tree_that_cannot_be_read_is_refused(tree: Tree) -> None:
    """With a sentence."""
    tree.snapshot()
    with modes_hold():
        tree.root.chmod(0o300)
        try:
            with pytest.raises(TreeRefused, match="cannot be read"):
                tree.snapshot()
        finally:
            tree.root.chmod(0o755)


def test_a_folder_that_cannot_be_written_leaves_everything_as_it_was(tree: Tree) -> None:
    """It is found before anything is exchanged, or everything is put back."""
    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    tree.write("src/b.txt", "edited\n")
    tree.write("new/x", "x")
    after = tree.snapshot()
    for folder in ("src", "new"):
        there = things(tree.root)
        mode = (tree.root / folder).stat().st_mode
        (tree.root / folder).chmod(0o555)
        with modes_hold():
            outcome = tree.roll_back(before, after)
        (tree.root / folder).chmod(mode)
        assert outcome.ending == "given up"
        assert [refusal.why for refusal in outcome.refused] == ["failed"]
        assert things(tree.root) == there
    assert tree.roll_back(before, after).ending == "done"
