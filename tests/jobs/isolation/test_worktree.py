"""Copies of a work tree: byte for byte, and git shows in them what it shows in the original."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from laneway.base.errors import TreeRefused
from laneway.jobs.isolation.removal import remove
from laneway.jobs.isolation.worktree import Copy
from laneway.jobs.snapshots import reading
from laneway.jobs.snapshots.model import Unguarded
from laneway.jobs.snapshots.objects import Objects
from laneway.jobs.snapshots.reading import MAX_KEPT_BYTES
from tests.jobs.isolation.support import Copied, looked
from tests.jobs.trees import Tree, git_files, things

LOOKS = (
    ("status", "--porcelain=v2", "--branch", "--untracked-files=all"),
    ("diff",),
    ("diff", "--cached"),
    ("log", "--all", "--oneline", "--decorate=full"),
    ("ls-files", "--stage", "-v"),
    ("for-each-ref",),
    ("submodule", "status"),
)
"""What a worker asks of git."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "work"


def dirty(tree: Tree) -> None:
    """Everything that a person may have lying about."""
    tree.write("src/staged.txt", "one\n")
    tree.git("add", "src/staged.txt")
    tree.write("src/staged.txt", "one\ntwo\n")
    tree.write("a.txt", "changed\r\n\0\xff")
    tree.write("untracked.txt", "mine\n")
    tree.write("added-later.txt", "x\n")
    tree.git("add", "--intent-to-add", "added-later.txt")
    tree.write_mode("private", "p\n", 0o600)
    tree.write_mode("program", "#!/bin/sh\n", 0o750)
    (tree.root / "link").symlink_to("nowhere")
    (tree.root / "to-folder").symlink_to("src")
    (tree.root / "empty" / "deep").mkdir(parents=True)
    (tree.root / "src").chmod(0o700)
    (tree.root / os.fsdecode(b"caf\xe9\n")).write_bytes(b"odd\n")
    tree.git("tag", "v1")
    tree.git("branch", "other")


def test_a_copy_is_the_tree_byte_for_byte(tree: Tree, folder: Path) -> None:
    """Dirty, untracked, staged; modes, links, empty folders. Nothing of the user's is written."""
    dirty(tree)
    before = things(tree.root), git_files(tree.root)
    job = Copied(tree, folder)
    assert things(job.top) == before[0]
    assert git_files(tree.root) == before[1]
    assert job.missing == ()
    assert job.top.name == tree.root.name
    for words in LOOKS:
        assert job.git(*words) == looked(tree.root, *words), words
    assert job.changed() == {}
    assert things(tree.root) == before[0]


def test_edits_in_a_copy_are_told_as_those_of_the_tree(tree: Tree, folder: Path) -> None:
    """And git sees them, too."""
    tree.write("old/c.txt", "three\n")
    tree.commit()
    job = Copied(tree, folder)
    (job.top / "a.txt").write_text("edited\n")
    (job.top / "src/b.txt").unlink()
    (job.top / "src").rmdir()
    (job.top / "new").mkdir(0o750)
    (job.top / "new/d.txt").write_text("d\n")
    (job.top / "old/c.txt").chmod(0o755)
    assert job.git("status", "--short").splitlines() == [
        " M a.txt",
        " M old/c.txt",
        " D src/b.txt",
        "?? new/",
    ]
    assert "edited" in job.git("diff")
    assert job.changed() == {
        "a.txt": (b"one\n", b"edited\n"),
        "new/d.txt": ("absent", b"d\n"),
        "old/c.txt": (b"three\n", b"three\n"),
        "src/b.txt": (b"two\n", "absent"),
    }
    edits = job.edits()
    assert edits.new_folders == {"new/": 0o750}
    assert edits.removed_folders == ("src/",)
    assert edits.git_writes == ()
    assert edits.source == str(job.top)
    assert things(tree.root).keys() >= {b"src/b.txt"}


def test_what_git_ignores_is_not_there_but_for_small_files(tree: Tree, folder: Path) -> None:
    """What is missing is told at the start, and what the job made of it at the end."""
    tree.write(".gitignore", "node_modules/\n.env\ndist/\n")
    tree.commit()
    tree.write(".env", "SECRET=1\n")
    tree.write("node_modules/a/b.js", "x\n")
    os.mkfifo(tree.root / "pipe")
    job = Copied(tree, folder)
    assert set(job.missing) == {Unguarded("node_modules/", "ignored"), Unguarded("pipe", "pipe")}
    assert (job.top / ".env").read_text() == "SECRET=1\n"
    assert not (job.top / "node_modules").exists()
    (job.top / "node_modules").mkdir()
    (job.top / "node_modules/c").write_text("c")
    (job.top / "dist").mkdir()
    (job.top / "dist/d").write_text("d")
    assert job.changed() == {}
    assert set(job.edits().left_out) == {
        Unguarded("node_modules/", "ignored"),
        Unguarded("dist/", "ignored"),
    }


def test_repositories_inside_the_tree_are_repositories_in_the_copy(tree: Tree, folder: Path) -> None:
    """A submodule, one that is simply there, and one with nothing in it."""
    origin = Tree(tree.root.parent, name="origin")
    origin.write("s.txt", "s\n")
    origin.commit("of the submodule")
    tree.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin.root), "sub")
    tree.commit()
    nested = Tree(tree.root / "deep", name="nested")
    nested.write("n.txt", "n\n")
    nested.commit("of the nested one")
    Tree(tree.root, name="void")
    tree.write("sub/s.txt", "edited\n")
    job = Copied(tree, folder)
    for words in LOOKS:
        assert job.git(*words) == looked(tree.root, *words), words
    assert job.git("log", "--format=%s", inside="deep/nested") == "of the nested one\n"
    assert job.git("status", "--short", inside="sub") == " M s.txt\n"
    (job.top / "deep/nested/n.txt").write_text("job\n")
    assert job.changed() == {"deep/nested/n.txt": (b"n\n", b"job\n")}


@pytest.mark.parametrize("kind", ["linked", "unborn", "detached", "sha256", "shallow", "sparse", "split"])
def test_a_repository_of_any_kind_has_copies(tmp_path: Path, folder: Path, kind: str) -> None:
    tree = kind_of(tmp_path, kind)
    tree.write("untracked", "x\n")
    before = things(tree.root)
    job = Copied(tree, folder)
    assert things(job.top) == before
    for words in LOOKS:
        if not (kind == "unborn" and words[0] == "log"):
            assert job.git(*words) == looked(tree.root, *words), words
    (job.top / "made").write_text("made\n")
    assert job.changed() == {"made": ("absent", b"made\n")}
    assert job.edits().git_writes == ()


def kind_of(tmp_path: Path, kind: str) -> Tree:
    tree = Tree(tmp_path)
    if kind == "sha256":
        subprocess.run(["rm", "-rf", str(tree.root / ".git")], check=True)
        tree.git("init", "--quiet", "--object-format=sha256")
    if kind == "unborn":
        tree.write("staged", "s\n")
        tree.git("add", "staged")
        return tree
    tree.write("a/one", "one\n")
    tree.write("b/two", "two\n")
    tree.commit()
    tree.write("b/two", "two and more\n")
    tree.commit()
    match kind:
        case "linked":
            tree.git("worktree", "add", "-q", "-b", "other", "../linked")
            return Tree(tmp_path, name="linked")
        case "detached":
            tree.git("checkout", "-q", "HEAD~1")
        case "shallow":
            tree.git("clone", "-q", "--depth=1", f"file://{tree.root}", "../shallow")
            return Tree(tmp_path, name="shallow")
        case "sparse":
            tree.git("sparse-checkout", "set", "a")
        case "split":
            tree.git("update-index", "--split-index")
    return tree


def test_settings_come_along_but_not_what_leads_out_of_the_copy(tree: Tree, folder: Path) -> None:
    """Values may be anything. Hooks are not taken over."""
    odd = 'a "b" \\c\n\td; #e '
    tree.git("config", "alias.odd", odd)
    tree.git("config", 'branch.a "b" \\c.description', "x")
    tree.git("config", "remote.origin.url", "https://example.org/x.git")
    tree.git("config", "core.hooksPath", "/somewhere")
    tree.git("config", "core.fsmonitor", "/bin/false")
    tree.git("config", "include.path", "../no.inc")
    tree.git("config", "core.autocrlf", "input")
    tree.write(".git/hooks/post-index-change", "#!/bin/sh\ntouch ran\n").chmod(0o755)
    job = Copied(tree, folder)
    assert job.git("config", "--get", "alias.odd") == f"{odd}\n"
    assert job.git("config", "--get", 'branch.a "b" \\c.description') == "x\n"
    assert job.git("config", "--get", "remote.origin.url") == "https://example.org/x.git\n"
    assert job.git("config", "--get", "core.autocrlf") == "input\n"
    listed = job.git("config", "--local", "--list").lower()
    assert not [word for word in ("hookspath", "fsmonitor", "include", "worktree") if word in listed]
    assert not list((job.top / ".git").glob("hooks/*"))


def test_filters_are_not_run_for_a_copy(tree: Tree, folder: Path, tmp_path: Path) -> None:
    """Nor while git looks for the first time which files are the same."""
    marker = tmp_path / "ran"
    tree.git("config", "filter.evil.clean", f"touch {marker}; cat")
    tree.git("config", "filter.evil.smudge", f"touch {marker}; cat")
    tree.write(".gitattributes", "*.txt filter=evil\n")
    tree.commit()
    marker.unlink(missing_ok=True)
    job = Copied(tree, folder)
    job.edits()
    assert not marker.exists()


def test_what_was_just_written_is_not_read_again(
    tree: Tree, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except what the clock is too coarse for; here it is fine. Changes show all the same."""
    dirty(tree)
    monkeypatch.setattr(reading, "TICK_NS", -1)
    job = Copied(tree, folder)
    blob = tree.shadow.states(job.baseline)["a.txt"].blob
    assert Objects(job.copy.shadow.folder / "repository", "sha1").missing([blob], own=True) == [blob]
    assert job.copy.shadow.states(job.copy.shadow.snapshot()) == tree.shadow.states(job.baseline)
    (job.top / "a.txt").write_text("edited\n")
    (job.top / "link").unlink()
    assert job.changed() == {
        "a.txt": ("changed\r\n\0\xff".encode(), b"edited\n"),
        "link": (b"nowhere", "absent"),
    }


def test_git_needs_to_read_no_file_again(tree: Tree, folder: Path) -> None:
    """Its folder is read-only for a worker, so that it could not remember what it has read."""
    job = Copied(tree, folder)
    listed = job.git("ls-files", "--debug", "a.txt")
    status = (job.top / "a.txt").stat()
    assert f"ino: {status.st_ino}" in listed.replace("\t", " ").replace("  ", " ")


def test_a_commit_in_a_copy_stays_there_and_is_told(tree: Tree, folder: Path) -> None:
    before = git_files(tree.root)
    job = Copied(tree, folder)
    (job.top / "new").write_text("new\n")
    job.git("add", "new")
    assert job.edits().git_writes == ("index",)
    job.git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "no")
    job.git("tag", "no")
    assert job.edits().git_writes == ("index", "refs/heads/main", "refs/tags/no")
    assert git_files(tree.root) == before


def test_a_large_file_is_copied_from_the_tree_if_it_is_still_the_same(tree: Tree, folder: Path) -> None:
    """It is not kept in the shadow."""
    tree.write("large", b"x" * (MAX_KEPT_BYTES + 1))
    job = Copied(tree, folder)
    assert (job.top / "large").stat().st_size == MAX_KEPT_BYTES + 1
    assert job.changed() == {}
    remove(folder)
    tree.write("large", b"y" * (MAX_KEPT_BYTES + 1))
    with pytest.raises(TreeRefused, match="large was changed while it was copied"):
        job.copy.begin(tree.shadow, job.baseline)


def test_a_place_in_the_tree_has_one_in_the_copy(tree: Tree, folder: Path) -> None:
    copy = Copy.of(tree.root, folder)
    assert copy.place_of(str(tree.root)) == str(copy.top)
    assert copy.place_of(str(tree.root / "src")) == str(copy.top / "src")
    with pytest.raises(TreeRefused, match="is not in"):
        copy.place_of(str(tree.root.parent))


def test_a_copy_that_the_worker_has_broken_is_refused(tree: Tree, folder: Path) -> None:
    """With a sentence."""
    job = Copied(tree, folder)
    subprocess.run(["rm", "-rf", str(job.top / ".git")], check=True)
    with pytest.raises(TreeRefused):
        job.edits()
