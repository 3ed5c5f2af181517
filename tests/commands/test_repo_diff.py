"""What `/diff` shows and `/review` is pointed at, on real repositories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laneway.commands import repo_diff, reviews
from laneway.core.offers import ReviewBranch, ReviewCommit, ReviewInstructions, ReviewUncommitted
from tests.doors.acp.repos import Repo, files

pytestmark = pytest.mark.usefixtures("own_git")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "r")
    made.write("a.txt", "one\n")
    made.write("sub/b.txt", "two\n")
    made.write(".gitignore", "*.log\n")
    made.commit("the first")
    return made


# ── the diff ───────────────────────────────────────────────────────────────


def test_staged_unstaged_and_new_files_are_shown_and_ignored_ones_are_not(repo: Repo) -> None:
    """Everything that a commit of all would hold."""
    repo.write("a.txt", "staged\n")
    repo.git("add", "a.txt")
    repo.write("sub/b.txt", "unstaged\n")
    repo.write("new é.txt", "new\n")
    repo.write("x.log", "noise\n")
    found = repo_diff.changes(repo.root)
    assert found.problem == ""
    assert found.notes == ()
    for line in ("-one", "+staged", "-two", "+unstaged", "+new"):
        assert f"\n{line}\n" in found.diff
    assert "x.log" not in found.diff


def test_looking_writes_nothing(repo: Repo) -> None:
    """Not the index, not an object: another git may be at work."""
    repo.write("a.txt", "changed\n")
    repo.write("new.txt", "new\n")

    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in repo.root.rglob("*") if path.is_file()}

    before = everything()
    assert repo_diff.changes(repo.root).diff
    assert everything() == before


def test_only_the_work_folder_is_looked_at(repo: Repo) -> None:
    """It may be a part of a large repository."""
    repo.write("a.txt", "elsewhere\n")
    repo.write("sub/b.txt", "here\n")
    repo.write("sub/c.txt", "new here\n")
    diff = repo_diff.changes(repo.root / "sub").diff
    assert "elsewhere" not in diff
    assert "+here" in diff
    assert "b/c.txt" in diff


def test_a_repository_without_a_commit_shows_all_of_its_files(tmp_path: Path) -> None:
    """There is no last commit: everything is new."""
    fresh = Repo(tmp_path / "fresh")
    fresh.write("a", "staged\n")
    fresh.git("add", "a")
    fresh.write("b", "not staged\n")
    diff = repo_diff.changes(fresh.root).diff
    assert "+staged" in diff
    assert "+not staged" in diff


def test_nothing_changed_is_an_empty_diff_and_no_repository_is_a_sentence(repo: Repo, tmp_path: Path) -> None:
    """The two are not the same."""
    assert repo_diff.changes(repo.root) == repo_diff.RepoDiff()
    plain = tmp_path / "plain"
    plain.mkdir()
    assert repo_diff.changes(plain).problem == f"{plain} is not in a git repository."


def test_a_large_diff_is_cut_at_a_line_and_says_so(repo: Repo) -> None:
    """An editor shows it as one message."""
    repo.write("a.txt", "".join(f"line {number} of many\n" for number in range(40_000)))
    found = repo_diff.changes(repo.root)
    assert len(found.diff.encode()) <= repo_diff.MAX_DIFF_BYTES
    assert found.diff.splitlines()[-1].endswith(" of many")
    assert found.notes == ("Only the first 256 KiB are shown. See the rest with `git diff`.",)


def test_large_and_odd_new_things_are_counted_not_shown(repo: Repo) -> None:
    """A large file, and a repository inside of this one."""
    repo.write("big.bin", bytes(repo_diff.MAX_DIFF_BYTES + 1))
    inner = Repo(repo.root / "inner")
    inner.write("x", "x\n")
    inner.commit()
    repo.write("small", "small\n")
    found = repo_diff.changes(repo.root)
    assert "+small" in found.diff
    assert "big.bin" not in found.diff
    assert found.notes == ("2 new files or folders are too large or too many to show. See `git status`.",)


def test_many_new_files_are_bounded(repo: Repo) -> None:
    """Each costs a process: after some of them the rest is counted."""
    for number in range(repo_diff.MAX_UNTRACKED + 3):
        repo.write(f"many/{number:04}", "x" * 2000 + "\n")
    found = repo_diff.changes(repo.root)
    assert len(found.diff.encode()) <= repo_diff.MAX_DIFF_BYTES
    assert found.notes


def test_no_program_that_a_repository_names_is_run(repo: Repo, tmp_path: Path) -> None:
    """Its config came with the download; looking at it must be safe."""
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    for setting in ("core.fsmonitor", "diff.external", "core.pager", "diff.x.textconv", "diff.x.command"):
        repo.git("config", setting, str(program))
    repo.write(".git/hooks/post-index-change", program.read_text()).chmod(0o755)
    repo.write(".gitattributes", "* diff=x\n")
    repo.write("a.txt", "changed\n")
    repo.write("new.txt", "new\n")
    mark.unlink(missing_ok=True)
    diff = repo_diff.changes(repo.root).diff
    assert "+changed" in diff
    assert "+new" in diff
    assert not mark.exists()


def test_variables_that_name_another_repository_do_not_lead_there(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git sets them for its hooks, and an editor may have been started by one."""
    other = Repo(tmp_path / "other")
    other.write("secret", "other\n")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    repo.write("a.txt", "mine\n")
    diff = repo_diff.changes(repo.root).diff
    assert "+mine" in diff
    assert "secret" not in diff


# ── git itself ─────────────────────────────────────────────────────────────


def test_without_git_there_is_a_sentence(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing needs git but what is about git."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repo_diff.changes(repo.root).problem == "There is no git on this machine."


# ── what to review ─────────────────────────────────────────────────────────


def test_uncommitted_changes_are_reviewed_where_there_are_any(repo: Repo) -> None:
    """A new file is one, too; without any no model is asked."""
    clean = reviews.target(repo.root, "")
    assert isinstance(clean, str)
    assert clean.startswith("There are no uncommitted changes to review.")
    repo.write("new", "x\n")
    assert reviews.target(repo.root, "") == ReviewUncommitted()


def test_a_branch_and_a_commit_must_exist(repo: Repo) -> None:
    """Codex takes any name, and the model would have to find out."""
    sha = repo.commit("Fix the door: é")
    assert reviews.target(repo.root, "branch main") == ReviewBranch("main")
    for name in ("HEAD", sha[:8], "main"):
        assert reviews.target(repo.root, f"commit {name}") == ReviewCommit(sha, "Fix the door: é")
    assert reviews.target(repo.root, "branch nope") == (
        "There is no branch nope here. See the branches with `git branch --all`."
    )
    assert reviews.target(repo.root, "commit --all") == (
        "There is no commit --all here. See the commits with `git log --oneline`."
    )


def test_a_branch_or_a_commit_without_a_name_is_asked_for(repo: Repo) -> None:
    """With an example."""
    assert reviews.target(repo.root, "branch") == "Name the branch, for example `/review branch main`."
    assert reviews.target(repo.root, "commit") == "Name the commit, for example `/review commit HEAD~1`."


def test_other_words_are_instructions_also_outside_of_a_repository(repo: Repo, tmp_path: Path) -> None:
    """Also such that begin with a branch or a commit."""
    plain = tmp_path / "plain"
    plain.mkdir()
    for said in ("look at the locks", "branch handling in app.py", "commit messages\nof late"):
        for folder in (repo.root, plain):
            assert reviews.target(folder, said) == ReviewInstructions(said)
    for said in ("", "branch main", "commit HEAD"):
        assert str(reviews.target(plain, said)).startswith(f"{plain} is not in a git repository.")


def test_the_work_tree_is_never_changed(repo: Repo) -> None:
    """Neither by looking for a diff nor for what to review."""
    repo.write("a.txt", "changed\n")
    os.symlink("nowhere", repo.root / "link")
    before = files(repo.root)
    repo_diff.changes(repo.root)
    for said in ("", "branch main", "commit HEAD", "all of it"):
        reviews.target(repo.root, said)
    assert files(repo.root) == before
