"""Each line of "data loss that was reproduced" with naive snapshots, as a test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.jobs.trees import Tree, git_files

ROUNDS = 30


def test_an_edit_within_the_same_tick_is_seen(tree: Tree) -> None:
    """Same size, right after the snapshot that read the old content: the look of the file may be the same."""
    path = tree.root / "a.txt"
    for number in range(ROUNDS):
        path.write_text(f"{number:03}\n")
        before = tree.snapshot()
        path.write_text(f"{number:03}!"[:4])
        assert tree.since(before) == {"a.txt": (b"%03d\n" % number, b"%03d!" % number)}


def test_an_edit_whose_time_was_set_back_is_seen(tree: Tree) -> None:
    """The time of the last change cannot be set."""
    path = tree.root / "a.txt"
    os.utime(path, ns=(1, 1))
    before = tree.snapshot()
    path.write_text("uno\n")
    os.utime(path, ns=(1, 1))
    assert tree.since(before) == {"a.txt": (b"one\n", b"uno\n")}


@pytest.mark.covers("J-a2.5")
@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_flags_of_the_users_index_hide_no_edit(tree: Tree, flag: str) -> None:
    """Git status would say that nothing has changed."""
    tree.git("update-index", flag, "a.txt")
    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    assert tree.git("status", "--porcelain") == ""
    assert tree.since(before) == {"a.txt": (b"one\n", b"edited\n")}


@pytest.mark.covers("J-a2.6")
def test_contents_are_those_on_disk_not_those_that_filters_and_line_ends_make(tree: Tree) -> None:
    """With the user's own settings, a rollback would write other bytes than there were."""
    tree.git("config", "core.autocrlf", "true")
    tree.git("config", "filter.upper.clean", "tr a-z A-Z")
    tree.git("config", "filter.upper.smudge", "tr A-Z a-z")
    tree.write(
        ".gitattributes",
        "*.up filter=upper\n*.id ident\n*.txt text=auto\n*.u16 working-tree-encoding=UTF-16\n",
    )
    contents = {
        "a.txt": b"crlf\r\nand lf\n",
        "x.up": b"lower\n",
        "x.id": b"$Id$\r\n",
        "x.u16": "é\n".encode("utf-16"),
        "x.bin": bytes(range(256)),
    }
    for name, content in contents.items():
        tree.write(name, content)
    tree.git("add", "--all")
    states = tree.shadow.states(tree.snapshot(), contents)
    assert {name: tree.told(state) for name, state in states.items()} == contents


@pytest.mark.covers("J-a2.23")
def test_a_file_behind_a_large_file_pointer_is_taken_as_it_lies(tree: Tree) -> None:
    """The pointer and the content that replaces it are two states of the path."""
    tree.write(".gitattributes", "*.psd filter=lfs diff=lfs merge=lfs -text\n")
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    tree.write("x.psd", pointer)
    before = tree.snapshot()
    tree.write("x.psd", b"the content\0")
    assert tree.since(before) == {"x.psd": (pointer, b"the content\0")}


def test_an_empty_repository_inside_is_no_hindrance_and_its_files_are_covered(tree: Tree) -> None:
    """`git add --all` fails there."""
    inner = Tree(tree.root, name="inner")
    before = tree.snapshot()
    inner.write("c.txt", "three\n")
    assert tree.since(before) == {"inner/c.txt": ("absent", b"three\n")}


@pytest.mark.covers("J-a2.7")
def test_edits_in_repositories_inside_are_seen(tree: Tree) -> None:
    """In one that git ignores, in a submodule, and in one within another."""
    tree.write(".gitignore", "ignored-repo\n")
    for name in ("plain", "ignored-repo", "plain/deeper"):
        inner = Tree(tree.root, name=name)
        inner.write("c.txt", "three\n")
        inner.write(".gitignore", "*.log\nbuild/\n")
        inner.commit()
        inner.write("build/out.o", "")
    tree.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tree.root / "plain"), "sub"
    )
    before = tree.snapshot()
    changed = {f"{name}/c.txt" for name in ("plain", "ignored-repo", "plain/deeper", "sub")}
    for name in changed:
        (tree.root / name).write_text("edited\n")
    assert tree.since(before) == dict.fromkeys(changed, (b"three\n", b"edited\n"))
    assert {"plain/build/", "plain/deeper/build/"} <= {left.path for left in tree.shadow.unguarded(before)}


@pytest.mark.covers("J-a2.8")
def test_edits_of_ignored_files_are_seen(tree: Tree) -> None:
    """Such as `.env`: nobody else has a copy of it."""
    tree.write(".gitignore", ".env\n*.log\n")
    tree.write(".env", "SECRET=1\n")
    before = tree.snapshot()
    tree.write(".env", "SECRET=2\n")
    tree.write("src/new.log", "x\n")
    assert tree.since(before) == {
        ".env": (b"SECRET=1\n", b"SECRET=2\n"),
        "src/new.log": ("absent", b"x\n"),
    }


@pytest.mark.covers("J-a2.9")
def test_what_was_staged_and_dropped_outlives_the_users_garbage_collection(tree: Tree) -> None:
    """Contents that the user's repository has, and nothing there needs any more."""
    tree.write("a.txt", "staged and never committed\n")
    tree.git("add", "a.txt")
    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    tree.git("add", "a.txt")
    tree.git("gc", "--quiet", "--prune=now")
    assert tree.since(before) == {"a.txt": (b"staged and never committed\n", b"edited\n")}


@pytest.mark.covers("J-a2.9")
def test_what_a_job_changed_is_kept_when_the_users_commits_are_thrown_away(tree: Tree) -> None:
    """The commit is amended, its log dropped, and garbage collected: the content is gone but for ours."""
    tree.write("only.txt", "only in the commit that is dropped\n")
    tree.commit()
    before = tree.snapshot()
    tree.write("only.txt", "by the job\n")
    after = tree.snapshot()
    changes = tree.shadow.changes(before, after)
    assert tree.shadow.keep(changes) == ()
    tree.git("reset", "--quiet", "--hard", "HEAD~1")
    tree.git("reflog", "expire", "--expire=now", "--all")
    tree.git("gc", "--quiet", "--prune=now")
    assert tree.git("cat-file", "--batch-check", "--batch-all-objects").count("blob") == 2
    assert [tree.both(change) for change in changes] == [
        (b"only in the commit that is dropped\n", b"by the job\n")
    ]


def throw_away_the_last_commit(tree: Tree) -> None:
    """Its contents are gone from the user's repository; the files stay."""
    tree.git("reset", "--quiet", "--soft", "HEAD~1")
    tree.git("reset", "--quiet")
    tree.git("reflog", "expire", "--expire=now", "--all")
    tree.git("gc", "--quiet", "--prune=now")


def test_a_new_run_records_again_what_the_users_commit_has_no_more(tree: Tree) -> None:
    """The file lies there as it did, and nobody else has its content."""
    tree.write("only.txt", "was committed once\n")
    tree.commit()
    tree.snapshot()
    throw_away_the_last_commit(tree)
    before = tree.snapshot(is_baseline=True)
    tree.write("only.txt", "by the job\n")
    assert tree.since(before) == {"only.txt": (b"was committed once\n", b"by the job\n")}


def test_what_was_thrown_away_before_it_could_be_kept_is_named(tree: Tree) -> None:
    """The rest is kept."""
    tree.write("only.txt", "in the commit that is dropped\n")
    tree.commit()
    before = tree.snapshot()
    tree.write("only.txt", "by the job\n")
    tree.write("a.txt", "by the job\n")
    throw_away_the_last_commit(tree)
    changes = tree.shadow.changes(before, tree.snapshot())
    assert tree.shadow.keep(changes) == ("only.txt",)
    assert tree.both(changes[0]) == (b"one\n", b"by the job\n")


@pytest.mark.covers("J-a2.6")
def test_all_bits_of_a_mode_are_recorded(tree: Tree) -> None:
    """Git knows one of them."""
    modes = {"a": 0o600, "b": 0o644, "c": 0o640, "d": 0o755, "e": 0o700, "f": 0o4755}
    for name, mode in modes.items():
        tree.write_mode(name, "x", mode)
    before = tree.snapshot()
    assert {name: state.mode for name, state in tree.shadow.states(before, modes).items()} == modes
    for name in modes:
        (tree.root / name).chmod(0o666)
    changes = tree.shadow.changes(before, tree.snapshot())
    assert {change.path: (change.before.mode, change.after.mode) for change in changes} == {
        name: (mode, 0o666) for name, mode in modes.items()
    }


def test_the_usual_mode_may_be_any(tmp_path: Path) -> None:
    """With the other bits for a few only: what is written down is the exception."""
    tree = Tree(tmp_path)
    for number in range(10):
        tree.write_mode(f"{number}.txt", "x", 0o660)
    tree.write_mode("one.txt", "x", 0o644)
    before = tree.snapshot()
    (tree.root / "one.txt").chmod(0o660)
    (tree.root / "3.txt").chmod(0o644)
    changes = tree.shadow.changes(before, tree.snapshot())
    assert [(change.path, change.before.mode, change.after.mode) for change in changes] == [
        ("3.txt", 0o660, 0o644),
        ("one.txt", 0o644, 0o660),
    ]


@pytest.mark.covers("J-a2.8")
def test_a_huge_file_is_not_copied(tree: Tree) -> None:
    """A change of it is still seen."""
    path = tree.write("video.bin", b"")
    os.truncate(path, 40 * 1024 * 1024)
    before = tree.snapshot()
    stored = sum(file.stat().st_size for file in tree.shadow.folder.rglob("*") if file.is_file())
    assert stored < 100_000
    with path.open("r+b") as file:
        file.write(b"x")
    ((name, (old, new)),) = tree.since(before).items()
    assert name == "video.bin"
    assert old != new
    assert isinstance(old, str)
    assert old.startswith("sha256:")


@pytest.mark.covers("J-a2.4")
def test_nothing_of_the_users_repository_is_written(tree: Tree) -> None:
    """Configuration, index, references, contents, stash: byte for byte, and not even touched."""
    tree.write("a.txt", "stashed\n")
    tree.git("stash")
    tree.write("staged.txt", "staged\n")
    tree.git("add", "staged.txt")
    own = git_files(tree.root)
    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    after = tree.snapshot(is_baseline=True)
    tree.shadow.keep(tree.shadow.changes(before, after))
    assert git_files(tree.root) == own
