"""What a worker did to the repository itself: told, with the way back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from laneway.jobs.repo_state import RepoState, breaches, present_litter, remove_litter, repo_state


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.email=a@example.org", "-c", "user.name=a"]
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")
    return folder


@pytest.mark.covers("004-tree.2", "J-workers.7")
def test_commits_branches_and_stashes_are_told_with_the_way_back(tmp_path: Path) -> None:
    """Each command that is named takes its breach back."""
    repo = repository(tmp_path / "repo")
    git(repo, "branch", "old")
    before = repo_state(str(repo))
    git(repo, "commit", "--quiet", "--allow-empty", "-m", "second")
    git(repo, "branch", "new")
    git(repo, "branch", "-D", "old")
    (repo / "x").write_text("x")
    git(repo, "add", "x")
    git(repo, "stash")
    found = breaches(before, repo_state(str(repo)))
    assert [text.split(" was ")[0] for text in found] == [
        "refs/heads/main",
        "refs/heads/new",
        "refs/heads/old",
        "The stash",
    ]
    for text in found[:3]:
        git(repo, *text.split("`")[1].split()[1:])
    git(repo, "stash", "drop")
    assert breaches(before, repo_state(str(repo))) == ()


def test_a_moved_head_is_told(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    before = repo_state(str(repo))
    git(repo, "checkout", "--quiet", "--detach")
    (text,) = breaches(before, repo_state(str(repo)))
    assert "`git checkout main` goes back" in text
    git(repo, "checkout", "--quiet", "main")
    assert breaches(before, repo_state(str(repo))) == ()


def test_a_repository_without_a_commit_has_a_head_and_no_references(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    assert repo_state(str(tmp_path)) == RepoState("refs/heads/main", {})


def test_a_repository_that_is_gone_has_moved_nothing(tmp_path: Path) -> None:
    """It is said that nothing could be compared; no command is named that could not be run."""
    repo = repository(tmp_path / "repo")
    before = repo_state(str(repo))
    repo.rename(tmp_path / "elsewhere")
    assert repo_state(str(repo)) is None
    (text,) = breaches(before, repo_state(str(repo)))
    assert text == "HEAD and references could not be compared: git cannot read the repository."
    assert breaches(None, before) == (text,)


@pytest.mark.covers("J-workers.18")
def test_only_new_and_empty_folders_of_the_sandbox_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    were_there = present_litter(str(tmp_path))
    (tmp_path / ".codex" / "sub").mkdir(parents=True)
    (tmp_path / ".agents").mkdir()
    (tmp_path / ".agents" / "mine.md").write_text("x")
    remove_litter(str(tmp_path), were_there)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".agents", ".aws"]
