"""What is the matter where git does not answer: the folder, the repository, or git itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laneway.commands import git_problems, repo_diff, reviews, undo
from laneway.wire.git import git
from tests.doors.acp.repos import Repo

pytestmark = pytest.mark.usefixtures("own_git")

ASK = " Say what to review: `/review the error handling in app.py`."


def told(folder: Path) -> str:
    """What `/diff` says; `/review` says the same in all its forms, and what else can be done."""
    said = repo_diff.changes(folder).problem
    for words in ("", "branch main", "commit HEAD"):
        assert reviews.target(folder, words) == said + ASK
    return said


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    """Neither git nor a repository is missing."""
    assert told(tmp_path / "gone") == f"There is no folder {tmp_path / 'gone'}."


def test_a_file_in_the_place_of_the_folder_is_no_folder(tmp_path: Path) -> None:
    """It was replaced behind our back."""
    (tmp_path / "file").write_text("")
    assert told(tmp_path / "file") == f"There is no folder {tmp_path / 'file'}."


def test_a_machine_without_git_is_told_by_review_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository may well be there."""
    Repo(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert told(tmp_path) == "There is no git on this machine."


def test_no_repository_is_told_as_such(tmp_path: Path) -> None:
    """The one error of git that has a sentence of ours."""
    assert told(tmp_path) == f"{tmp_path} is not in a git repository."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
def test_a_repository_of_somebody_else_is_told_in_gits_own_words(tmp_path: Path) -> None:
    """Git refuses it: its first line says why."""
    repo = Repo(tmp_path / "theirs")
    for path in (repo.root, repo.root / ".git"):
        os.chown(path, 65534, 65534)
    assert told(repo.root) == (
        f"Git does not work in {repo.root}: detected dubious ownership in repository at '{repo.root}'."
    )


def test_a_repository_that_git_cannot_read_is_told_in_gits_own_words(tmp_path: Path) -> None:
    """Without what would turn the text around, and only the first line."""
    repo = Repo(tmp_path / "r")
    (repo.root / ".git").rename(tmp_path / "elsewhere")
    (repo.root / ".git").write_text("gitdir: /no/\u202esuch")
    assert told(repo.root) == (f"Git does not work in {repo.root}: not a git repository: /no/\\u202esuch.")


def test_a_long_error_is_shortened(tmp_path: Path) -> None:
    """It may repeat a name."""
    error = git(tmp_path, "x" * 4000).error
    assert len(git_problems.first_line(error)) == git_problems.MAX_LINE_CHARS


@pytest.mark.parametrize("what", ["branch", "commit"])
@pytest.mark.parametrize("name", ["a\0b", "x" * 200_000])
def test_a_name_that_git_cannot_be_asked_for_is_that_of_nothing(tmp_path: Path, what: str, name: str) -> None:
    """A NUL is in no name. It is said in a sentence, without the name's full length."""
    Repo(tmp_path).commit()
    said = reviews.target(tmp_path, f"{what} {name}")
    assert isinstance(said, str)
    shown = "a\\x00b here" if "\0" in name else "xxx"
    assert said.startswith(f"There is no {what} {shown}")
    assert len(said) < 300


def test_undo_says_that_the_folder_is_gone(tmp_path: Path) -> None:
    """And not that git is."""
    diff = "diff --git a/a b/a\nindex 1..2\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n"
    assert undo.check(diff, tmp_path / "gone") == undo.CannotRevert(f"there is no folder {tmp_path / 'gone'}")
