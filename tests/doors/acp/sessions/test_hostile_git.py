"""`/diff`, `/review` and `/undo` in repositories that want a program run, or that hold up whoever looks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from laneway.commands import repo_diff, reviews, undo
from laneway.wire.git_view import MAX_COMPARED_BYTES
from tests.adversary.hostile_repository import Hostile, Stall, Trap, stalls, traps
from tests.adversary.odd_files import SPARSE_BYTES
from tests.doors.acp.repos import Repo

pytestmark = pytest.mark.usefixtures("own_git")

BACK = "diff --git a/tracked.txt b/tracked.txt\nindex 1..2\n--- a/tracked.txt\n+++ b/tracked.txt\n"
BACK += "@@ -1 +1 @@\n-one\n+changed\n"
DELETED = "diff --git a/other.txt b/other.txt\ndeleted file mode 100644\nindex 1..0\n--- a/other.txt\n"
DELETED += "+++ /dev/null\n@@ -1 +0,0 @@\n-two\n"


def enter(made: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the user whose home it is."""
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, made.environment()[name])


@traps
def test_the_trap_is_armed(trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain git runs the program: what is shown below could fail."""
    made = trap.set(tmp_path)
    enter(made, monkeypatch)
    for words in trap.provocations:
        made.plain_git(*words)
    assert made.was_run()


@traps
def test_a_diff_runs_nothing_and_tells_what_has_changed(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or says what it leaves out, where the bytes alone do not tell."""
    made = trap.set(tmp_path)
    enter(made, monkeypatch)
    found = repo_diff.changes(made.root)
    assert made.was_run() == ""
    if trap.name.startswith("missing_content"):
        assert found.problem.startswith("Git could not tell what has changed: ")
        return
    assert found.problem == ""
    assert "+new\n" in found.diff
    if "filter" in trap.name and "submodule" not in trap.name:
        assert "+changed" not in found.diff
        assert any("tracked.txt" in note and "filter" in note for note in found.notes)
    else:
        assert "-one\n+changed\n" in found.diff
        assert found.notes == ()


@traps
def test_what_to_review_is_found_without_running_anything(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether there are changes, whether a branch is there, what a commit is called."""
    made = trap.set(tmp_path)
    enter(made, monkeypatch)
    for words in ("", "branch main", "commit HEAD"):
        target = reviews.target(made.root, words)
        assert made.was_run() == "", words
        assert not isinstance(target, str), words


@traps
def test_an_undo_runs_nothing_and_puts_the_bytes_back(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of the edit are Codex's; no filter has a say in them."""
    made = trap.set(tmp_path)
    enter(made, monkeypatch)
    before = (made.root / "other.txt").read_bytes()
    (made.root / "other.txt").unlink()
    diff = BACK + DELETED.replace("-two", f"-{before.decode().strip()}")
    found = undo.check(diff, made.root)
    assert isinstance(found, undo.UndoPlan), found
    assert undo.revert(found, made.root) == ""
    assert made.was_run() == ""
    assert (made.root / "tracked.txt").read_bytes() == b"one\n"
    assert (made.root / "other.txt").read_bytes() == before


@stalls
def test_whatever_lies_there_somebody_who_looks_is_told_so_soon(stall: Stall, tmp_path: Path) -> None:
    """A sentence, not fifteen seconds of silence; git itself would wait."""
    root = tmp_path / "r"
    stall(root)
    found = repo_diff.changes(root)
    assert "seconds" not in found.problem
    target = reviews.target(root, "")
    assert "seconds" not in str(target)
    assert isinstance(undo.check(BACK, root), undo.CannotRevert)


def test_a_git_in_the_repository_is_never_the_git_that_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may write there, and an activated environment puts it on the PATH; so does a dot."""
    made = Hostile(tmp_path)
    made.change()
    folder = made.root / ".venv" / "bin"
    folder.mkdir(parents=True)
    for place in (folder, made.root):
        (place / "git").write_text(made.program.read_text())
        (place / "git").chmod(0o755)
    for first in (str(folder), ".", "", ".venv/bin"):
        monkeypatch.setenv("PATH", f"{first}:{os.defpath}")
        assert "+changed" in repo_diff.changes(made.root).diff
        assert made.was_run() == ""


def test_a_repository_that_names_another_work_folder_is_refused(tmp_path: Path) -> None:
    """Its files would be shown as the repository's own."""
    made = Hostile(tmp_path)
    made.change()
    made.config("core.worktree", "/")
    assert "names another work folder" in repo_diff.changes(made.root).problem


def test_a_work_tree_with_line_ends_of_its_own_shows_no_change(tmp_path: Path) -> None:
    """What git turns by itself, by attributes or settings, is no program: it is done as ever."""
    repo = Repo(tmp_path / "r")
    repo.write(".gitattributes", "*.txt text eol=crlf\n")
    repo.write("a.txt", b"one\r\n")
    repo.write("b.dat", b"two\n")
    repo.git("config", "core.autocrlf", "true")
    repo.commit()
    os.utime(repo.root / "a.txt", ns=(1, 1))
    os.utime(repo.root / "b.dat", ns=(1, 1))
    assert repo_diff.changes(repo.root) == repo_diff.RepoDiff()


def test_files_that_go_through_a_filter_are_named_and_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of Git LFS: the bytes of the file and those in the repository differ by design."""
    made = Hostile(tmp_path)
    enter(made, monkeypatch)
    (made.home / ".gitconfig").write_text('[filter "lfs"]\n\tclean = tr a-z A-Z\n\trequired\n')
    made.repo.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    for name in ("same.bin", "touched.bin", "edited.bin", "gone.bin"):
        os.utime(made.repo.write(name, "content\n"), ns=(10**18, 10**18))  # well before the index
    made.repo.commit("large files")
    os.utime(made.root / "touched.bin", ns=(1, 1))
    made.repo.write("edited.bin", "other\n")
    (made.root / "gone.bin").unlink()
    made.repo.write("tracked.txt", "changed\n")
    found = repo_diff.changes(made.root)
    assert "+changed" in found.diff
    assert "deleted file mode" in found.diff
    for name in ("same.bin", "touched.bin", "edited.bin"):
        assert name not in found.diff
    assert found.notes == (
        "2 files that may have changed go through a filter, which Laneway does not run: "
        "edited.bin, touched.bin. See them with `git diff`.",
    )


def test_filtered_files_in_a_part_of_a_repository_are_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are those of the folder that is looked at; new files there are shown, too."""
    made = Hostile(tmp_path)
    enter(made, monkeypatch)
    made.repo.write(".gitattributes", "*.bin filter=lfs\n")
    for name in ("sub/x.bin", "sub/y.txt", "x.bin"):
        os.utime(made.repo.write(name, "one\n"), ns=(10**18, 10**18))
    made.repo.commit()
    for name in ("sub/x.bin", "sub/y.txt", "x.bin", "sub/new.txt", "new.txt"):
        made.repo.write(name, f"changed {name}\n")
    found = repo_diff.changes(made.root / "sub")
    assert [line for line in found.diff.splitlines() if line.startswith("+changed")] == [
        "+changed sub/new.txt",
        "+changed sub/y.txt",
    ]
    (note,) = found.notes
    assert ": x.bin. See it with" in note


def test_a_filter_that_nobody_has_defined_filters_nothing(tmp_path: Path) -> None:
    """Git takes the bytes as they are then, and so do we."""
    made = Hostile(tmp_path)
    made.repo.write(".gitattributes", "* filter=nobodys\n")
    made.change()
    found = repo_diff.changes(made.root)
    assert "-one\n+changed\n" in found.diff
    assert found.notes == ()


def test_what_the_user_ignores_everywhere_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the user's own file, by its usual place, and by the repository's private one."""
    made = Hostile(tmp_path)
    enter(made, monkeypatch)
    (made.home / ".config" / "git").mkdir(parents=True)
    (made.home / ".config" / "git" / "ignore").write_text("*.usual\n")
    made.repo.write(".git/info/exclude", "*.private\n")
    for name in ("a.usual", "a.private", "a.own", "a.seen"):
        made.repo.write(name, f"this is {name}\n")
    diff = repo_diff.changes(made.root).diff
    assert [name for name in ("a.usual", "a.private", "a.own", "a.seen") if name in diff] == [
        "a.own",
        "a.seen",
    ]
    (made.home / "mine").write_text("*.own\n")
    (made.home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    diff = repo_diff.changes(made.root).diff
    assert [name for name in ("a.usual", "a.own", "a.seen") if name in diff] == ["a.usual", "a.seen"]


def test_all_kinds_of_repositories_are_looked_at(tmp_path: Path) -> None:
    """A linked worktree, a submodule, a split index, a detached head, objects elsewhere, an odd name."""
    origin = Repo(tmp_path / 'ori:gin "quoted" é')
    odd = Repo(Path(os.fsdecode(os.fsencode(tmp_path) + b"/li\nne\\\xff")))
    for repo in (origin, odd):
        repo.write("a.txt", "one\n")
        repo.commit()
    origin.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    shared = tmp_path / "shared"
    subprocess.run(["git", "clone", "--quiet", "--shared", origin.root, shared], check=True)
    outer = Repo(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(shared), "sub")
    split = Repo(tmp_path / "split")
    split.write("a.txt", "one\n")
    split.commit()
    split.git("update-index", "--split-index")
    for root in (origin.root, odd.root, tmp_path / "linked", shared, outer.root / "sub", split.root):
        assert repo_diff.changes(root) == repo_diff.RepoDiff(), root
        (root / "a.txt").write_text("changed\n")
        assert "-one\n+changed\n" in repo_diff.changes(root).diff, root


def test_sha256_repositories_are_looked_at(tmp_path: Path) -> None:
    """Their ids are longer."""
    root = tmp_path / "r"
    made = subprocess.run(
        ["git", "init", "--quiet", "--object-format=sha256", root], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip("this git makes none")
    repo = Repo(root)
    repo.write("a.txt", "one\n")
    repo.commit()
    repo.write("a.txt", "changed\n")
    assert "-one\n+changed\n" in repo_diff.changes(root).diff


def test_links_are_shown_as_links_and_never_followed(tmp_path: Path) -> None:
    """Whether they are new, were there before, or took the place of a file or a folder."""
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "key").write_text("PRIVATE KEY\n")
    made = Hostile(tmp_path)
    made.repo.write("folder/key", "x\n")
    (made.root / "before").symlink_to(secret / "key")
    made.repo.commit()
    (secret / "null").write_text("PRIVATE KEY\n")
    (made.root / "new").symlink_to(secret / "key")
    (made.root / "new-folder").symlink_to(secret)
    (made.root / "tracked.txt").unlink()
    (made.root / "tracked.txt").symlink_to(secret / "key")
    (made.root / "folder" / "key").unlink()
    (made.root / "folder").rmdir()
    (made.root / "folder").symlink_to(secret)
    found = repo_diff.changes(made.root)
    assert found.problem == ""
    assert "PRIVATE KEY" not in found.diff
    assert found.diff.count("new file mode 120000") >= 3


def test_names_that_look_like_something_else_are_names(tmp_path: Path) -> None:
    """Options, standard input, patterns, line ends, letters that move the cursor, bytes that are no text."""
    made = Hostile(tmp_path)
    names = (
        b"-",
        b"--output=evil",
        b"-p",
        b":(top)x",
        b"*",
        b"a\nb",
        b"\x1b[2K",
        b"\xff",
        b"HEAD",
        b"sp ace",
    )
    for name in names:
        with open(os.path.join(os.fsencode(made.root), name), "wb") as file:
            file.write(b"content of " + name.hex().encode() + b"\n")
    found = repo_diff.changes(made.root)
    for name in names:
        assert f"+content of {name.hex()}\n" in found.diff
    assert found.notes == ()
    assert "\x1b" not in found.diff
    assert not (made.root / "evil").exists()
    made.repo.commit("all of them")
    for name in names:
        with open(os.path.join(os.fsencode(made.root), name), "wb") as file:
            file.write(b"changed " + name.hex().encode() + b"\n")
    diff = repo_diff.changes(made.root).diff
    for name in names:
        assert f"+changed {name.hex()}\n" in diff


def test_a_file_without_measure_fills_no_memory(tmp_path: Path) -> None:
    """Whatever the repository says about how large a file may be to be read whole."""
    made = Hostile(tmp_path)
    made.config("core.bigFileThreshold", "100g")
    with (made.root / "tracked.txt").open("wb") as file:
        file.truncate(MAX_COMPARED_BYTES + 1)
    with (made.root / "huge").open("wb") as file:
        file.truncate(SPARSE_BYTES)
    found = repo_diff.changes(made.root)
    assert "Binary files a/tracked.txt and b/tracked.txt differ" in found.diff
    assert found.notes == ("1 new file or folder is too large or too many to show. See `git status`.",)
