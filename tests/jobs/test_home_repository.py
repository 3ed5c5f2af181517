"""A home folder that is a repository: what Codex and Laneway keep there is no edit of a job's."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.jobs.places import JobsLayout
from laneway.jobs.resolving import Resolution, resolve
from laneway.jobs.snapshots.model import Snapshot
from tests.doors.acp.repos import Repo
from tests.jobs.stage import Stage, spawn, stage, writing
from tests.jobs.trees import Tree


def move_home(here: Stage) -> Repo:
    """The folder around Codex's home becomes the work tree, and Laneway's state moves into it."""
    top = here.home.parent
    here.work = top
    here.places = JobsLayout.of(top / ".local" / "state" / "laneway")
    repo = Repo(top)
    repo.write(".profile", "1\n")
    repo.git("add", ".profile")
    repo.git("commit", "--quiet", "-m", "first")
    return repo


@pytest.mark.covers("J-a2.11", "J-a2.14")
async def test_jobs_in_a_home_folder_are_credited_with_their_own_edits_and_rolled_back(
    tmp_path: Path,
) -> None:
    """Two at once, without a conflict in Codex's databases; afterwards the thread can be continued."""
    async with stage(tmp_path, is_repo=False) as here:
        repo = move_home(here)
        jobs = here.jobs()
        one = spawn(jobs, writing("%edit .profile 1 => 2\n%run true\n%say Done."))
        two = spawn(jobs, writing("%patch other 2\n%run true\n%say Done."))
        await here.ended(jobs, one, two)
        assert [f.path for f in here.result(jobs, one).modified_files] == [".profile"]
        assert [f.path for f in here.result(jobs, two).modified_files] == ["other"]
        shown = resolve(jobs, "local", Resolution(action="show"))
        assert (shown["conflicts"], shown["changedByOthers"]) == ([], [])
        back = resolve(jobs, "local", Resolution(action="rollback"))
        assert (back["ending"], back["paths"]) == ("done", [".profile", "other"])
        assert (repo.root / ".profile").read_text() == "1\n"
        (again,) = await here.ended(jobs, jobs.send(one.job_id, "%say Still here."))
        assert here.result(jobs, again).last_message == "Still here."


def test_what_was_known_in_a_folder_of_ours_is_neither_changed_nor_deleted(tmp_path: Path) -> None:
    """Snapshots of an older Laneway have it; so does one that was taken by a process with another home."""
    tree = Tree(tmp_path)
    tree.write("codex/state", "1")
    tree.write("a", "a")
    before = tree.snapshot(is_baseline=True)

    def changes(ours: tuple[Path, ...], last: Snapshot) -> tuple[Snapshot, list[str]]:
        from laneway.jobs.shadow import Shadow

        made = Shadow(tree.shadow.folder, tree.root, ours=ours).snapshot()
        return made, [change.path for change in tree.shadow.changes(last, made)]

    tree.write("codex/state", "2")
    tree.write("a", "b")
    left_out, found = changes((tree.root / "codex",), before)
    assert found == ["a"]
    tree.write("codex/state", "3")
    assert changes((tree.root / "codex",), left_out)[1] == []
    assert changes((), left_out)[1] == []
