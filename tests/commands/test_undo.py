"""The edits of a turn are taken out of the files again: all of them, or none."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from laneway.commands import undo
from laneway.commands.undo import CannotRevert, Section, UndoPlan
from tests.doors.acp.repos import Repo, files

pytestmark = pytest.mark.usefixtures("own_git")


def edit(name: str, old: str = "old", new: str = "new") -> str:
    """One line replaced, in Codex's words."""
    head = f"diff --git a/{name} b/{name}\nindex {'1' * 40}..{'2' * 40}\n"
    return f"{head}--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def added(name: str, *lines: str) -> str:
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\nindex {'0' * 40}..{'2' * 40}\n"
    return f"{head}--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n{body}"


def deleted(name: str, *lines: str) -> str:
    body = "".join(f"-{line}\n" for line in lines)
    head = f"diff --git a/{name} b/{name}\ndeleted file mode 100644\nindex {'1' * 40}..{'0' * 40}\n"
    return f"{head}--- a/{name}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{body}"


MOVED = (
    "diff --git a/mv.txt b/moved/mv2.txt\nindex 4e1a0fe..5ee6f7e\n--- a/mv.txt\n+++ b/moved/mv2.txt\n"
    "@@ -1,3 +1,3 @@\n m1\n-m2\n-m3\n\\ No newline at end of file\n+M2\n+m3\n"
)
"""As Codex 0.163 tells a move: without git's own words for one."""
EMPTY = f"diff --git a/e m b/e m\nnew file mode 100644\nindex {'0' * 40}..{'e' * 40}\n"


def take_back(diff: str, cwd: Path) -> str:
    found = undo.check(diff, cwd)
    return found.reason if isinstance(found, CannotRevert) else undo.revert(found, cwd)


# ── reading ────────────────────────────────────────────────────────────────


def test_a_diff_tells_which_files_are_new_gone_moved_and_edited() -> None:
    """Every way in which Codex tells of a file."""
    diff = added("n.txt", "x") + deleted("d.txt", "y", "z") + MOVED + EMPTY + edit('q"t é.txt')
    assert undo.read(diff) == (
        Section(None, "n.txt"),
        Section("d.txt", None),
        Section("mv.txt", "moved/mv2.txt"),
        Section(None, "e m"),
        Section('q"t é.txt', 'q"t é.txt'),
    )


def test_lines_of_a_file_that_look_like_headers_name_no_file() -> None:
    """A deleted line `-- a/x` reads `--- a/x` in a diff."""
    diff = deleted("d.txt", "-- a/../x", "diff --git a/y b/y") + added("n", "++ b/../z", "@@ -1 +1 @@")
    assert undo.read(diff) == (Section("d.txt", None), Section(None, "n"))


@pytest.mark.parametrize(
    "diff",
    [
        "hello\n",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        edit("x") + "more\n",
        edit("x").removesuffix("+new\n"),
        edit("x").replace("+new\n", "+new\n+newer\n"),
        edit("x").replace("a/x", "c/x"),
        "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
        "diff --git a/x b/x\nGIT binary patch\n",
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
        "diff --git a/x b/yy\nold mode 100644\nnew mode 100755\n",
    ],
)
def test_a_diff_that_is_not_understood_whole_is_not_read_at_all(diff: str) -> None:
    """Half-understood is how a wrong file is changed."""
    assert undo.read(diff) is None


@given(st.text(alphabet="ab/\n-+ @\\d,1", max_size=80))
def test_reading_never_fails(text: str) -> None:
    """Whatever Codex says, there is an answer."""
    undo.read(text)
    undo.read(edit("x") + text)


# ── planning ───────────────────────────────────────────────────────────────


def test_paths_begin_at_the_top_of_the_repository() -> None:
    """The work folder may be a part of it."""
    found = undo.plan(edit("sub/a"), Path("/r/sub"), Path("/r"))
    assert isinstance(found, UndoPlan)
    assert found.names == ("sub/a",)


@pytest.mark.parametrize(
    "name", ["a", "subway/a", "sub/../a", "../a", "/etc/passwd", "sub", "", ".", "sub/a\tb", "sub/\x1b[2K"]
)
def test_a_file_outside_of_the_work_folder_is_never_touched(name: str) -> None:
    """One such file, and all of the turn's edits stay."""
    diff = edit("sub/fine") + edit(name)
    assert isinstance(undo.plan(diff, Path("/r/sub"), Path("/r")), CannotRevert)


# ── doing ──────────────────────────────────────────────────────────────────


def test_all_kinds_of_edits_are_put_back(tmp_path: Path) -> None:
    """New, deleted, moved and edited files are as they were, to the byte."""
    repo = Repo(tmp_path / "r")
    before = {"d.txt": b"y\n", "x.txt": b"old\n", "mv.txt": b"m1\nm2\nm3", "kept": b"k"}
    after = {
        "n.txt": b"a\nb\n",
        "x.txt": b"new\n",
        "moved/mv2.txt": b"m1\nM2\nm3\n",
        "e m": b"",
        "kept": b"k",
    }
    for name, content in after.items():
        repo.write(name, content)
    diff = added("n.txt", "a", "b") + deleted("d.txt", "y") + MOVED + edit("x.txt") + EMPTY

    assert take_back(diff, repo.root) == ""

    assert files(repo.root) == before


def test_it_works_in_a_part_of_a_repository_and_outside_of_any(tmp_path: Path) -> None:
    """Codex names files from the top of the repository, else from the folder."""
    repo = Repo(tmp_path / "r")
    inner = repo.write("sub/deep/a", "new\n")
    assert take_back(edit("sub/deep/a"), repo.root / "sub") == ""
    assert inner.read_text() == "old\n"
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a").write_text("new\n")
    assert take_back(edit("a"), plain) == ""
    assert (plain / "a").read_text() == "old\n"


def test_one_file_that_changed_since_leaves_all_of_them_as_they_are(tmp_path: Path) -> None:
    """All or nothing, and the file is named."""
    repo = Repo(tmp_path / "r")
    repo.write("a", "new\n")
    repo.write("b", "new, and mine\n")
    before = files(repo.root)
    assert take_back(edit("a") + edit("b"), repo.root) == "b changed after the turn"
    assert files(repo.root) == before


def test_a_file_that_is_gone_or_in_the_way_leaves_all_as_it_is(tmp_path: Path) -> None:
    """Neither is anything made up, nor anything overwritten."""
    repo = Repo(tmp_path / "r")
    repo.write("a", "new\n")
    repo.write("d", "somebody wrote it again\n")
    before = files(repo.root)
    assert take_back(edit("a") + edit("gone"), repo.root) == "gone changed after the turn"
    assert take_back(edit("a") + deleted("d", "y"), repo.root) == "d changed after the turn"
    assert files(repo.root) == before


def test_lines_added_elsewhere_in_the_file_are_kept(tmp_path: Path) -> None:
    """A person may have gone on in the same file, further up."""
    repo = Repo(tmp_path / "r")
    diff = (
        "diff --git a/f b/f\nindex 1..2\n--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n"
        " 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n"
    )
    file = repo.write("f", "0\nmine\n1\n2\n3\nfour\n5\n6\n7\n8\n")
    assert take_back(diff, repo.root) == ""
    assert file.read_text() == "0\nmine\n1\n2\n3\n4\n5\n6\n7\n8\n"


def test_the_folder_that_is_worked_in_stays_though_nothing_is_left_in_it(tmp_path: Path) -> None:
    """git would take it away, and with it the ground under Codex and the editor."""
    cwd = Repo(tmp_path).write("deep/down/new/a", "x\n").parent.parent
    before = cwd.stat().st_ino
    assert take_back(added("deep/down/new/a", "x"), cwd) == ""
    assert list(cwd.iterdir()) == []
    assert cwd.stat().st_ino == before


def test_what_happens_between_looking_and_doing_is_not_overwritten(tmp_path: Path) -> None:
    """The check was good, the file is not any more."""
    repo = Repo(tmp_path / "r")
    repo.write("a", "new\n")
    repo.write("b", "new\n")
    found = undo.check(edit("a") + edit("b"), repo.root)
    assert isinstance(found, UndoPlan)
    repo.write("b", "mine\n")
    assert undo.revert(found, tmp_path) == "b changed after the turn"
    assert files(repo.root) == {"a": b"new\n", "b": b"mine\n"}


def test_nothing_is_written_through_a_symlink(tmp_path: Path) -> None:
    """Neither a file nor a folder may lead out of the work folder, nor elsewhere inside of it."""
    repo = Repo(tmp_path / "r")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("new\n")
    repo.write("own/a", "new\n")
    os.symlink(outside, repo.root / "folder")
    os.symlink(outside / "a", repo.root / "file")
    os.symlink("own", repo.root / "inside")
    for name in ("folder/a", "file", "inside/a"):
        assert (
            take_back(edit(name), repo.root)
            == f"{name} is a symlink, lies behind one, or is no ordinary file"
        )
    assert take_back(deleted("folder/gone", "y"), repo.root).startswith("folder/gone is a symlink")
    assert files(outside) == {"a": b"new\n"}
    assert (repo.root / "own/a").read_text() == "new\n"


def test_a_work_folder_that_is_itself_a_symlink_is_fine(tmp_path: Path) -> None:
    """It is the folder that the person chose."""
    repo = Repo(tmp_path / "r")
    file = repo.write("sub/a", "new\n")
    os.symlink(repo.root / "sub", tmp_path / "link")
    assert take_back(edit("sub/a"), tmp_path / "link") == ""
    assert file.read_text() == "old\n"


def test_a_pipe_in_the_place_of_a_file_does_not_hold_us(tmp_path: Path) -> None:
    """Reading it would take until somebody writes."""
    repo = Repo(tmp_path / "r")
    os.mkfifo(repo.root / "pipe")
    assert "no ordinary file" in take_back(edit("pipe"), repo.root)


def test_the_files_of_git_itself_are_left_alone(tmp_path: Path) -> None:
    """Its config can name programs to run."""
    repo = Repo(tmp_path / "r")
    repo.write(".git/extra", "new\n")
    assert take_back(edit(".git/extra"), repo.root) != ""
    assert (repo.root / ".git/extra").read_text() == "new\n"


def test_line_ends_and_blanks_are_kept_whatever_the_user_told_git(tmp_path: Path) -> None:
    """The bytes are Codex's: git's habits for people do not apply."""
    repo = Repo(tmp_path / "r")
    for setting, value in (
        ("core.autocrlf", "true"),
        ("apply.whitespace", "fix"),
        ("core.whitespace", "cr-at-eol"),
    ):
        repo.git("config", setting, value)
    crlf, lf = repo.write("crlf", b"new \r\n"), repo.write("lf", b"new\n")
    assert take_back(edit("crlf", "old \r", "new \r") + edit("lf", "old \t", "new"), repo.root) == ""
    assert crlf.read_bytes() == b"old \r\n"
    assert lf.read_bytes() == b"old \t\n"


def test_a_deleted_program_can_be_run_again(tmp_path: Path) -> None:
    """Codex tells every file as an ordinary one; the repository knows better."""
    repo = Repo(tmp_path / "r")
    for name in ("run.sh", "plain.sh", "*.sh"):
        repo.write(name, "y\n").chmod(0o644 if name == "plain.sh" else 0o755)
    repo.commit()
    (repo.root / "run.sh").unlink()
    (repo.root / "plain.sh").unlink()
    assert take_back(deleted("run.sh", "y") + deleted("plain.sh", "y"), repo.root) == ""
    assert os.access(repo.root / "run.sh", os.X_OK)
    assert not os.access(repo.root / "plain.sh", os.X_OK)


LINES = st.lists(st.sampled_from(["a", "b", "", "-- a/x", "@@ -1 +1 @@", "\\", "é"]), max_size=12)


@settings(max_examples=30)
@given(old=LINES, new=LINES)
def test_any_edit_of_any_text_is_put_back(
    old: list[str], new: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also of lines that look like parts of a diff."""
    assume(old != new)
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    hunks = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), "a/f", "b/f"
    )
    diff = "diff --git a/f b/f\nindex 1..2\n" + "".join(hunks)
    folder = tmp_path_factory.mktemp("edited")
    (folder / "f").write_text(after)
    assert take_back(diff, folder) == ""
    assert (folder / "f").read_text() == before
