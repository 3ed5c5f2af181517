"""Edits as protocol 2 shows them: a patch that git itself takes, and nothing that goes unseen."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from laneway.core.model import FileChange
from laneway.doors.acp.v2.patches import contents, quoted, section
from tests.doors.acp.repos import Repo, files
from tests.doors.acp.updates.test_diffs import files as texts
from tests.doors.acp.updates.test_diffs import unified

NAMES = ("a.txt", "with blank.txt", 'quo"te.txt', "back\\slash.txt", "tab\there.txt", "é€.txt", "\x01\n.txt")


def applied(root: Path, before: dict[str, str], *changes: FileChange) -> dict[str, bytes]:
    """What a folder looks like after git has applied the patch of these changes."""
    repo = Repo(root)
    for name, text in before.items():
        repo.write(name, text)
    patch = "".join(section(change, str(root)) or "" for change in changes)
    (root.parent / "patch").write_text(patch, newline="")
    # Git takes the lines of a rename to be one step shorter than the others; ACP wants them alike.
    steps = len(root.parts) + any(change.move_path is not None for change in changes)
    repo.git("apply", "--unidiff-zero", f"-p{steps}", str(root.parent / "patch"))
    return files(root)


@pytest.mark.parametrize("name", NAMES)
def test_git_takes_the_patch_whatever_the_name(tmp_path: Path, name: str) -> None:
    """Added, changed, deleted and moved: paths are quoted as git quotes them."""
    old, new = "one\ntwo\n", "one\n2\n"
    update = unified(old, new, 3)
    work = tmp_path / "work"
    assert applied(work, {}, FileChange(path=name, kind="add", diff=old)) == {name: old.encode()}
    assert applied(work, {}, FileChange(path=name, kind="update", diff=update)) == {name: new.encode()}
    moved = FileChange(path=name, kind="update", diff="", move_path=f"{name}.moved")
    assert applied(work, {}, moved) == {f"{name}.moved": new.encode()}
    gone = FileChange(path=f"{name}.moved", kind="delete", diff=new)
    assert applied(work, {}, gone) == {}


@settings(max_examples=25)
@given(old=texts, new=texts)
def test_git_makes_the_new_text_of_the_old_one(old: str, new: str) -> None:
    """Whatever the lines look like, and whether or not the last one has an end."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "work"
        add = FileChange(path="f", kind="add", diff=old)
        assert applied(root, {}, add) == {"f": old.encode()}
        if old != new:
            change = FileChange(path="f", kind="update", diff=unified(old, new, 3))
            assert applied(root, {}, change) == {"f": new.encode()}
        gone = FileChange(path="f", kind="delete", diff=new)
        assert applied(root, {}, gone) == {}


def test_all_changes_of_an_edit_are_one_diff() -> None:
    """Each with what is done to it; the patch has a section for each."""
    (diff,) = contents(
        [
            FileChange(path="a", kind="add", diff="x\n"),
            FileChange(path="/b", kind="delete", diff="y\n"),
            FileChange(path="c", kind="update", diff="@@ -1 +1 @@\n-1\n+2\n", move_path="d"),
        ],
        "/work",
    )
    assert diff["changes"] == [
        {"operation": "add", "path": "/work/a"},
        {"operation": "delete", "path": "/b"},
        {"operation": "move", "oldPath": "/work/c", "path": "/work/d"},
    ]
    assert diff["patch"]["text"].count("diff --git ") == 3


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (FileChange(path="a", kind="update", diff="@@\n-1\n+2\n"), "+2"),
        (FileChange(path="a", kind="update", diff="Binary files differ\n"), "Binary files differ"),
        (FileChange(path="a", kind="add", diff="x" * 101), "too long to show"),
        (FileChange(path="", kind="add", diff="secret"), "secret"),
    ],
    ids=["no line numbers", "binary", "too long", "no name"],
)
def test_what_is_no_patch_is_said_in_words(change: FileChange, shown: str) -> None:
    """Nobody is shown less of a change than there is."""
    *structured, words = contents([change], "/work", 100)
    assert shown in words["content"]["text"]
    assert all("patch" not in diff for diff in structured)
    assert bool(structured) == bool(change.path)


def test_paths_are_quoted_as_git_quotes_them() -> None:
    """Only where they have to be."""
    assert [quoted(path) for path in ("/a b", "/é", '/"\\', "/\n\x01")] == [
        "/a b",
        '"/\\303\\251"',
        '"/\\"\\\\"',
        '"/\\n\\001"',
    ]
