"""Repositories of every kind: recorded rightly, or refused with a sentence."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from laneway.base.errors import TreeRefused
from laneway.jobs.shadow import Shadow
from laneway.jobs.snapshots.work_tree import under_way, work_tree
from tests.jobs.trees import Tree


def shadow_of(tmp_path: Path, root: Path) -> Shadow:
    return Shadow(tmp_path / "another-shadow", root)


def changed(shadow: Shadow, path: Path) -> set[str]:
    """Edits a file; the changes that are seen."""
    before = shadow.snapshot()
    path.write_text("edited\n")
    return {change.path for change in shadow.changes(before, shadow.snapshot())}


@pytest.mark.covers("004-git", "J-a2.23")
def test_a_repository_without_a_work_tree_is_refused(tmp_path: Path) -> None:
    """And a folder that is in no repository, and one that is not there."""
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "bare"], check=True)
    with pytest.raises(TreeRefused, match="without a work tree"):
        shadow_of(tmp_path, tmp_path / "bare").snapshot()
    (tmp_path / "plain").mkdir()
    with pytest.raises(TreeRefused, match="not in a git repository"):
        shadow_of(tmp_path, tmp_path / "plain").snapshot()
    with pytest.raises(TreeRefused, match="There is no folder"):
        shadow_of(tmp_path, tmp_path / "missing").snapshot()


def test_a_folder_inside_a_work_tree_is_refused(tree: Tree, tmp_path: Path) -> None:
    """The tree is recorded as a whole."""
    with pytest.raises(TreeRefused, match="not the top"):
        shadow_of(tmp_path, tree.root / "src").snapshot()
    assert work_tree(tree.root / "src").top == tree.root


@pytest.mark.covers("J-a2.23")
def test_no_commit_yet(tmp_path: Path) -> None:
    """All files are untracked."""
    tree = Tree(tmp_path)
    tree.write("a.txt", "one\n")
    before = tree.snapshot()
    assert before.head == ""
    tree.write("a.txt", "edited\n")
    assert tree.since(before) == {"a.txt": (b"one\n", b"edited\n")}


@pytest.mark.covers("J-a2.23")
def test_a_sparse_checkout(tree: Tree) -> None:
    """What is not checked out is not there; with an index that leaves folders out, too."""
    for number in range(3):
        tree.write(f"d{number}/x.txt", "x\n")
    tree.write(".gitignore", "*.o\nout/\n")
    tree.commit()
    tree.git("sparse-checkout", "set", "--cone", "--sparse-index", "d1")
    tree.write("d1/out/x", "x")
    before = tree.snapshot()
    assert set(tree.shadow.states(before)) == {".gitignore", "a.txt", "d1/x.txt"}
    tree.write("d1/x.txt", "edited\n")
    assert set(tree.since(before)) == {"d1/x.txt"}
    assert {left.path for left in tree.shadow.unguarded(before)} == {"d1/out/"}


def test_a_linked_worktree(tree: Tree, tmp_path: Path) -> None:
    """It has its own index and its own rebase."""
    linked = tmp_path / "linked"
    tree.git("worktree", "add", "--quiet", "-b", "side", str(linked))
    facts = work_tree(linked)
    assert facts.git_dir == str(tree.root / ".git/worktrees/linked")
    assert facts.objects == str(tree.root / ".git/objects")
    assert changed(shadow_of(tmp_path, linked), linked / "a.txt") == {"a.txt"}


def test_a_worktree_inside_the_tree_is_covered(tree: Tree) -> None:
    """Agents put theirs there."""
    tree.git("worktree", "add", "--quiet", "-b", "side", str(tree.root / ".worktrees/side"))
    before = tree.snapshot()
    tree.write(".worktrees/side/a.txt", "edited\n")
    assert tree.since(before) == {".worktrees/side/a.txt": (b"one\n", b"edited\n")}


@pytest.mark.covers("J-a2.7")
def test_a_submodule_as_the_tree(tree: Tree, tmp_path: Path) -> None:
    """Its repository lies elsewhere."""
    outer = Tree(tmp_path, name="outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tree.root), "sub")
    sub = outer.root / "sub"
    assert changed(shadow_of(tmp_path, sub), sub / "a.txt") == {"a.txt"}


def test_a_repository_that_names_contents_in_another_way(tmp_path: Path) -> None:
    """SHA-256: the user's contents can be read only in the same form."""
    root = tmp_path / "tree"
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", root], check=True)
    tree = Tree(tmp_path)
    tree.write("a.txt", "one\n")
    tree.commit()
    for number in range(120):
        tree.write(f"many/{number}", f"{number}")
    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    tree.write("many/7", "edited\n")
    assert tree.since(before) == {"a.txt": (b"one\n", b"edited\n"), "many/7": (b"7", b"edited\n")}
    tree.shadow.keep(tree.shadow.changes(before, tree.snapshot()))


def test_a_folder_that_only_looks_like_a_repository(tree: Tree) -> None:
    """Its files are covered as any others."""
    tree.write("fake/.git", "gitdir: /nowhere\n")
    tree.write("fake/x.txt", "x\n")
    tree.write("empty/.git/keep", "")
    tree.write("empty/y.txt", "y\n")
    before = tree.snapshot()
    tree.write("fake/x.txt", "edited\n")
    tree.write("empty/y.txt", "edited\n")
    assert set(tree.since(before)) == {"fake/x.txt", "empty/y.txt"}


def test_a_repository_whose_configuration_is_hostile_runs_nothing(tree: Tree, tmp_path: Path) -> None:
    """A worker can make one in the tree; so can it add attributes and hooks."""
    ran = tmp_path / "ran"
    program = tree.write_mode("evil.sh", f"#!/bin/sh\ntouch {ran}\n", 0o755)
    inner = Tree(tree.root, name="inner")
    inner.write("x.txt", "x\n")
    for repo in (tree, inner):
        for key in (
            "core.fsmonitor",
            "filter.f.clean",
            "filter.f.process",
            "core.sshCommand",
            "diff.d.textconv",
        ):
            repo.git("config", key, str(program))
        (repo.root / ".gitattributes").write_text("* filter=f diff=d\n")
    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    tree.write("inner/x.txt", "edited\n")
    assert set(tree.since(before)) == {"a.txt", "inner/x.txt"}
    assert not ran.exists()


def test_a_damaged_index_of_the_user_is_refused(tree: Tree) -> None:
    """What is tracked cannot be known."""
    (tree.root / ".git/index").write_bytes(b"damaged")
    with pytest.raises(TreeRefused, match="index"):
        tree.snapshot()


def test_replaced_contents_are_not_taken_for_the_real_ones(tree: Tree) -> None:
    """References that replace objects have no part in a snapshot."""
    blob = tree.git("rev-parse", "HEAD:a.txt").strip()
    other = tree.git("rev-parse", "HEAD:src/b.txt").strip()
    tree.git("replace", blob, other)
    assert tree.told(tree.shadow.states(tree.snapshot())["a.txt"]) == b"one\n"


@pytest.mark.covers("J-a2.23")
def test_a_rebase_and_a_merge_in_progress_are_recorded_and_named(tree: Tree) -> None:
    """A rollback refuses them; a snapshot does not."""
    tree.git("checkout", "--quiet", "-b", "side")
    tree.write("a.txt", "side\n")
    tree.commit()
    tree.git("checkout", "--quiet", "main")
    tree.write("a.txt", "main\n")
    tree.commit()
    own = work_tree(tree.root).git_dir
    assert under_way(own) == ""
    for words, name in (
        ("rebase side", "a rebase"),
        ("merge side", "a merge"),
        ("cherry-pick side", "a cherry-pick"),
    ):
        with pytest.raises(subprocess.CalledProcessError):
            tree.git(*words.split())
        assert under_way(own) == name
        assert b"<<<<<<<" in tree.shadow.read(tree.shadow.states(tree.snapshot())["a.txt"])
        tree.git(words.split()[0], "--abort")
    tree.git("bisect", "start")
    assert under_way(own) == "a bisection"
