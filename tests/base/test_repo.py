"""Repository facts without a git process, compared with git's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from laneway.base.repo import Repo, detached_at, find_repo
from tests.adversary.odd_files import Maker, unreadable


def git(folder: Path, *words: str) -> None:
    """Real git makes the folders; a name and address so that it will commit anywhere."""
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)


def make_project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "deep" / "down").mkdir(parents=True)
    git(root, "init")
    git(root, "commit", "--allow-empty", "-m", "first")
    return root


def test_a_folder_deep_inside_belongs_to_its_repository(tmp_path: Path) -> None:
    """Root, name and branch, also for branches with a slash."""
    root = make_project(tmp_path)
    assert find_repo(root / "deep" / "down") == Repo(root, "project", "main")
    git(root, "checkout", "-b", "feature/lane")
    assert find_repo(root) == Repo(root, "project", "feature/lane")


def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    """A commit is not a branch."""
    root = make_project(tmp_path)
    git(root, "checkout", "--detach")
    assert find_repo(root) == Repo(root, "project", None)


def test_a_linked_worktree_is_its_own_root_with_its_own_branch(tmp_path: Path) -> None:
    """There `.git` is a file."""
    root = make_project(tmp_path)
    git(root, "worktree", "add", "-b", "side", str(tmp_path / "other"))
    assert find_repo(tmp_path / "other") == Repo(tmp_path / "other", "other", "side")


def test_outside_of_git_there_is_nothing(tmp_path: Path) -> None:
    """Nor behind a `.git` that is none: no name is made up from the folder."""
    assert find_repo(tmp_path) is None
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert find_repo(tmp_path) is None
    (tmp_path / ".git").write_bytes(b"\xff\xfe garbage")
    assert find_repo(tmp_path) is None


# ── repositories that mean no good ─────────────────────────────────────────


@unreadable
def test_an_odd_head_is_no_branch_and_nobody_waits_for_it(tmp_path: Path, make: Maker) -> None:
    """A sandboxed model can make any of these, and every turn looks at it."""
    (tmp_path / ".git").mkdir()
    make(tmp_path / ".git" / "HEAD")
    found = find_repo(tmp_path)
    assert found is None or found.branch is None
    assert detached_at(tmp_path) is None


@unreadable
def test_an_odd_git_file_is_no_repository(tmp_path: Path, make: Maker) -> None:
    """Except for a folder, which has no head here."""
    make(tmp_path / ".git")
    assert find_repo(tmp_path) is None


@pytest.mark.parametrize(
    "named",
    ["/dev/zero", "/dev/fd", "/dev/null", ".git", ".", "a\0b", "\udcff", "x" * 5000, "/proc/self/fd/0"],
)
def test_a_git_file_that_leads_astray_is_no_branch(tmp_path: Path, named: str) -> None:
    """Into the devices, to itself, or to what can be no path."""
    (tmp_path / ".git").write_bytes(f"gitdir: {named}\n".encode("utf-8", "surrogateescape"))
    found = find_repo(tmp_path)
    assert found is None or found.branch is None
    assert detached_at(tmp_path) is None


def test_a_worktree_whose_own_folder_holds_a_pipe_has_no_branch(tmp_path: Path) -> None:
    """Its head and where it says that the rest is."""
    root = make_project(tmp_path)
    git(root, "worktree", "add", "-b", "side", str(tmp_path / "other"))
    own = root / ".git" / "worktrees" / "other"
    for name in ("HEAD", "commondir", "gitdir"):
        (own / name).unlink()
        os.mkfifo(own / name)
    assert find_repo(tmp_path / "other") == Repo(tmp_path / "other", "other", None)


def test_a_head_that_is_a_link_is_the_branch_that_it_names(tmp_path: Path) -> None:
    """As git once made them, and still reads them; a link to anything else is nothing."""
    head = make_project(tmp_path) / ".git" / "HEAD"
    head.unlink()
    head.symlink_to("refs/heads/main")
    assert find_repo(tmp_path / "project") == Repo(tmp_path / "project", "project", "main")
    (tmp_path / "other").write_text("ref: refs/heads/theirs\n")
    head.unlink()
    head.symlink_to(tmp_path / "other")
    assert find_repo(tmp_path / "project") == Repo(tmp_path / "project", "project", None)


def test_a_head_that_only_keeps_other_programs_away_is_no_branch(tmp_path: Path) -> None:
    """What git writes there when branches are kept in a table of its own."""
    head = make_project(tmp_path) / ".git" / "HEAD"
    head.write_text("ref: refs/heads/.invalid\n")
    assert find_repo(tmp_path / "project") == Repo(tmp_path / "project", "project", None)


def test_the_name_of_a_branch_or_a_folder_may_be_no_text(tmp_path: Path) -> None:
    """Git takes any bytes; so do we."""
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n"))
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_bytes(b"ref: refs/heads/\xfe\n")
    found = find_repo(root)
    assert found is not None
    assert (found.root, found.branch) == (root, "�")
