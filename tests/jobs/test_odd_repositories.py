"""Real jobs in repositories that are not plain: edits are found and given back, or a sentence refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import TreeRefused, UsageError
from laneway.jobs.model import Isolation, JobLimits
from laneway.jobs.partial import result_of
from laneway.jobs.resolving import Resolution, resolve
from laneway.jobs.service import Jobs
from tests.doors.acp.repos import Repo
from tests.jobs.stage import spawn, stage, writing
from tests.jobs.trees import Thing, things

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
PROMPT = "%run echo more >> a.txt\n%patch new/n.txt one\n%say Done."
EDITED = [("a.txt", "modified"), ("new/n.txt", "added")]


def plain(root: Path) -> Repo:
    repo = Repo(root)
    repo.write("a.txt", "a\n")
    repo.commit()
    return repo


def without_a_commit(top: Path) -> Path:
    repo = Repo(top / "without-a-commit")
    repo.write("a.txt", "a\n")
    return repo.root


def sparse(top: Path) -> Path:
    repo = plain(top / "sparse")
    for number in range(3):
        repo.write(f"d{number}/x.txt", "x\n")
    repo.commit()
    repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "d1")
    return repo.root


def large_file_pointers(top: Path) -> Path:
    """Whose filter is required, and not installed: git itself could not even say what was changed."""
    repo = plain(top / "pointers")
    repo.write("big.psd", POINTER)
    repo.write(".gitattributes", "*.psd filter=lfs diff=lfs merge=lfs -text\n")
    repo.commit()
    repo.git("config", "filter.lfs.clean", "no-such-program")
    repo.git("config", "filter.lfs.smudge", "no-such-program")
    repo.git("config", "filter.lfs.required", "true")
    repo.write("big.psd", "the content\0")
    return repo.root


def around_a_submodule(top: Path) -> Path:
    inner, repo = plain(top / "other"), plain(top / "around")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub")
    repo.commit()
    return repo.root


def a_submodule(top: Path) -> Path:
    return around_a_submodule(top / "outer") / "sub"


def a_linked_worktree(top: Path) -> Path:
    linked = top / "linked"
    plain(top / "main").git("worktree", "add", "--quiet", "-b", "side", str(linked))
    return linked


KINDS: tuple[Callable[[Path], Path], ...] = (
    without_a_commit,
    sparse,
    large_file_pointers,
    around_a_submodule,
    a_submodule,
    a_linked_worktree,
)


def asked(jobs: Jobs, root: Path, action: Any) -> dict[str, Any]:
    return resolve(jobs, "local", Resolution(action=action, cwd=str(root)))


@pytest.mark.covers("J-a2.23")
@pytest.mark.parametrize("isolation", ["shared", "overlay", "worktree"])
async def test_edits_in_a_repository_of_any_kind_are_found_given_back_and_back_again(
    tmp_path: Path, isolation: Isolation
) -> None:
    """By a real worker in each of them; its own copy is merged back there as anywhere."""
    async with stage(tmp_path, is_repo=False) as here:
        jobs = here.jobs(JobLimits(read=0, write=len(KINDS), total=len(KINDS)))
        roots = [make(here.work) for make in KINDS]
        before: list[dict[bytes, Thing]] = [things(root) for root in roots]
        started = [spawn(jobs, writing(PROMPT, cwd=str(root), isolation=isolation)) for root in roots]
        ended = await here.ended(jobs, *started)
        for root, was, job in zip(roots, before, ended, strict=True):
            assert job.status == "succeeded", (root, job, here.log_of(job.job_id))
            found = result_of(jobs, job)[0].modified_files
            assert [(file.path, file.change) for file in found] == EDITED, root
            assert {file.certainty for file in found} <= {"patch", "alone", "overlay"}, (root, found)
            after = things(root)
            assert after[b"a.txt"].content == b"a\nmore\n"
            assert asked(jobs, root, "rollback")["ending"] == "done"
            assert things(root) == was, root
            assert asked(jobs, root, "undo")["ending"] == "done"
            assert things(root) == after, root


@pytest.mark.covers("J-a2.16", "J-a2.23")
async def test_in_the_middle_of_a_rebase_a_job_may_write_and_nothing_is_given_back(tmp_path: Path) -> None:
    """A sentence says what is under way; once it is over, the rollback is done."""
    async with stage(tmp_path, is_repo=False) as here:
        repo = plain(here.work / "rebased")
        repo.git("checkout", "--quiet", "-b", "side")
        repo.write("b.txt", "side\n")
        repo.commit()
        repo.git("checkout", "--quiet", "main")
        repo.write("b.txt", "main\n")
        repo.commit()
        with pytest.raises(subprocess.CalledProcessError):
            repo.git("rebase", "side")
        jobs = here.jobs()
        job = spawn(jobs, writing(PROMPT, cwd=str(repo.root)))
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "succeeded", here.log_of(job.job_id)
        edited = things(repo.root)
        with pytest.raises(TreeRefused, match="there is a rebase in progress: end it first"):
            asked(jobs, repo.root, "rollback")
        assert things(repo.root) == edited
        repo.git("rebase", "--quit")
        assert asked(jobs, repo.root, "rollback")["ending"] == "done"
        assert (repo.root / "a.txt").read_text() == "a\n"


@pytest.mark.covers("J-tools.20", "J-a2.23")
async def test_a_writing_job_in_a_repository_without_a_work_tree_is_refused_at_once(tmp_path: Path) -> None:
    """Also in one that lies in the work tree of another, and beside the work trees that it is of."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        beside = here.work / "project"
        inside, hidden, alone = here.work / "inside.git", beside / ".bare", tmp_path / "alone.git"
        for bare in (inside, hidden, alone):
            here.git("init", "--quiet", "--bare", str(bare))
        (beside / ".git").write_text("gitdir: ./.bare\n")
        for folder in (inside, inside / "refs", beside, hidden, alone):
            with pytest.raises(
                UsageError, match="in a repository without a work tree: nothing can be edited"
            ):
                jobs.spawn(writing("x", cwd=str(folder)))
        assert jobs.ledger.listed() == []
