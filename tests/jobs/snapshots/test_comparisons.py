"""What differs between two snapshots is found out once."""

from __future__ import annotations

import pytest

from tests.jobs.trees import Tree


def test_snapshots_that_were_compared_are_not_compared_again(tree: Tree) -> None:
    """Not even git is needed any more, nor the contents."""
    before = tree.snapshot()
    tree.write("a.txt", "two\n")
    tree.write("new.txt", "new\n").chmod(0o600)
    (tree.root / "src" / "b.txt").unlink()
    after = tree.snapshot()
    first = tree.shadow.changes(before, after)
    assert [change.path for change in first] == ["a.txt", "new.txt", "src/b.txt"]
    backwards = tree.shadow.changes(after, before)
    assert [(change.before, change.after) for change in backwards] == [
        (change.after, change.before) for change in first
    ]
    (tree.shadow.folder / "repository").rename(tree.root.parent / "away")
    assert tree.shadow.changes(before, after) == first
    assert tree.shadow.changes(after, before) == backwards


@pytest.mark.parametrize("damage", [b"", b"[", b'[{"path": 1}]', b"\0" * 100])
def test_a_damaged_comparison_is_made_again(tree: Tree, damage: bytes) -> None:
    before = tree.snapshot()
    tree.write("a.txt", "two\n")
    after = tree.snapshot()
    first = tree.shadow.changes(before, after)
    (kept,) = (tree.shadow.folder / "comparisons").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert tree.shadow.changes(before, after) == first
    assert kept.read_bytes() == whole


def test_a_comparison_that_cannot_be_kept_is_told_all_the_same(tree: Tree) -> None:
    before = tree.snapshot()
    (tree.shadow.folder / "comparisons").write_text("something else")
    tree.write("a.txt", "two\n")
    assert [change.path for change in tree.shadow.changes(before, tree.snapshot())] == ["a.txt"]
