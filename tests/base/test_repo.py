"""Repository facts without a git process, compared with git's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from laneway.base.repo import Repo, find_repo


def git(folder: Path, *words: str) -> None:
    """Real git makes the folders; a name and address so that it will commit anywhere."""
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)


def make(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "deep" / "down").mkdir(parents=True)
    git(root, "init")
    git(root, "commit", "--allow-empty", "-m", "first")
    return root


def test_a_folder_deep_inside_belongs_to_its_repository(tmp_path: Path) -> None:
    """Root, name and branch, also for branches with a slash."""
    root = make(tmp_path)
    assert find_repo(root / "deep" / "down") == Repo(root, "project", "main")
    git(root, "checkout", "-b", "feature/lane")
    assert find_repo(root) == Repo(root, "project", "feature/lane")


def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    """A commit is not a branch."""
    root = make(tmp_path)
    git(root, "checkout", "--detach")
    assert find_repo(root) == Repo(root, "project", None)


def test_a_linked_worktree_is_its_own_root_with_its_own_branch(tmp_path: Path) -> None:
    """There `.git` is a file."""
    root = make(tmp_path)
    git(root, "worktree", "add", "-b", "side", str(tmp_path / "other"))
    assert find_repo(tmp_path / "other") == Repo(tmp_path / "other", "other", "side")


def test_outside_of_git_there_is_nothing(tmp_path: Path) -> None:
    """Nor behind a `.git` that is none: no name is made up from the folder."""
    assert find_repo(tmp_path) is None
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert find_repo(tmp_path) is None
    (tmp_path / ".git").write_bytes(b"\xff\xfe garbage")
    assert find_repo(tmp_path) is None
