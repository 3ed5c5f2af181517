"""What a worker reports as changed is compared with what was changed, wherever in the tree it works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laneway.jobs.isolation.isolated import as_original, isolated
from laneway.jobs.model import Isolation
from laneway.jobs.partial import result_of
from laneway.jobs.reports import in_tree
from tests.jobs.stage import spawn, stage, writing

REPORT = r"%say Done.\n\nModified files:\nx.txt\n{top}/new.txt\nnever.txt"


@pytest.mark.covers("J-a2.12")
@pytest.mark.parametrize("isolation", ["shared", "worktree"])
async def test_a_report_is_relative_to_the_folder_that_the_worker_was_given(
    tmp_path: Path, isolation: Isolation
) -> None:
    """As the contract says; some name all of a path, or begin at the top of the repository."""
    async with stage(tmp_path) as here:
        sub = here.work / "sub"
        sub.mkdir()
        here.write(**{"sub/x.txt": "x\n", "sub/y.txt": "y\n"})
        jobs = here.jobs()
        script = f"%edit x.txt x => z\n%patch new.txt 1\n%run echo more >> y.txt\n{REPORT.format(top='sub')}"
        job = spawn(jobs, writing(script, cwd=str(sub), isolation=isolation))
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "succeeded", here.log_of(job.job_id)
        result = result_of(jobs, ended)[0]
        assert [file.path for file in result.modified_files] == ["sub/new.txt", "sub/x.txt", "sub/y.txt"]
        assert (result.only_reported, result.not_reported) == (("sub/never.txt",), ("sub/y.txt",))


def test_a_path_of_a_report_is_one_of_the_tree_however_it_is_told(tmp_path: Path) -> None:
    """What lies outside stays as it is told; what no file can be called does no harm."""
    tree = tmp_path / "tree"
    (tree / "sub" / "deep").mkdir(parents=True)
    (tree / "top.txt").touch()
    (tree / "sub" / "x.txt").touch()
    (tree / "link").symlink_to("sub")
    cwd = str(tree / "sub")
    for told, path in (
        ("x.txt", "sub/x.txt"),
        ("./x.txt", "sub/x.txt"),
        ("deep/gone.txt", "sub/deep/gone.txt"),
        ("../top.txt", "top.txt"),
        (str(tree / "sub" / "x.txt"), "sub/x.txt"),
        ("sub/x.txt", "sub/x.txt"),
        ("top.txt", "top.txt"),
        ("../link/x.txt", "sub/x.txt"),
        ("/etc/passwd", "/etc/passwd"),
        ("../../x", "../../x"),
        ("a\0b", "sub/a\0b"),
        ("\ud800", "\ud800"),
        ("n" * 300, f"sub/{'n' * 300}"),
    ):
        assert in_tree([told], str(tree), cwd) == (path,), told


def test_a_path_of_a_copy_is_one_of_the_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    copy = isolated("worktree", tree, tmp_path / "work")
    told = os.path.join(copy.place_of(str(tree)), "src", "x.txt")
    assert in_tree([told], str(tree), str(tree), lambda text: as_original(copy, text)) == ("src/x.txt",)
