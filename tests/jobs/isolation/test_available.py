"""Where an overlay is not possible, one sentence says why; nothing else is done instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.jobs.isolation import overlay
from laneway.jobs.isolation.overlay import available, mount_points
from tests.jobs.isolation.support import layered, linux_only, need_overlay
from tests.jobs.trees import Tree

ASK = """
import sys
from pathlib import Path
from laneway.jobs.isolation.overlay import available
print(available(Path(sys.argv[1]), Path(sys.argv[2])))
"""


def asked(before: list[str], tree: Path, near: Path) -> str:
    """The answer of a process that is started by another program, which changes its rights or its mounts."""
    words = [*before, sys.executable, "-c", ASK, str(tree), str(near)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@linux_only
def test_a_trial_leaves_nothing_behind(tree: Tree, tmp_path: Path) -> None:
    """Nor anything in the tree."""
    near = tmp_path / "state"
    need_overlay(tree.root, near)
    mounts = mount_points()
    assert list(near.iterdir()) == []
    assert sorted(path.name for path in tree.root.iterdir()) == [".git", "a.txt", "src"]
    assert mount_points() == mounts


def test_another_system_has_none(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay.sys, "platform", "darwin")  # type: ignore[attr-defined]
    assert available(tree.root, tmp_path) == "An overlay needs Linux: use isolation worktree."


@linux_only
def test_a_state_folder_in_the_tree_would_cover_itself(tree: Tree) -> None:
    """Also behind a link."""
    (tree.root / "state").mkdir()
    link = tree.root.parent / "link"
    link.symlink_to(tree.root / "state")
    assert "lies in the work tree" in available(tree.root, link)


@linux_only
def test_codexs_home_in_the_tree_would_be_covered_too(tree: Tree, tmp_path: Path) -> None:
    """Its threads would end up in a layer, and nobody could go on with them."""
    home = tree.root / "codex"
    home.mkdir()
    assert available(tree.root, tmp_path / "state", str(home)) == (
        f"No overlay: Codex's home {home} lies in the work tree."
    )


@linux_only
def test_a_folder_without_a_repository_has_none(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert "is not in a git repository" in available(tmp_path / "plain", tmp_path / "state")


@linux_only
def test_something_that_is_mounted_inside_is_named(tree: Tree, tmp_path: Path) -> None:
    """The kernel does not let an overlay show it."""
    need_overlay(tree.root, tmp_path / "state")
    inside = tree.root / "data here"
    inside.mkdir()
    mount = f"mount -t tmpfs none '{inside}' && exec \"$@\""
    answer = asked(["unshare", "-Urm", "bash", "-c", mount, "-"], tree.root, tmp_path / "state")
    assert answer == f"No overlay: something else is mounted in the work tree, at {inside}."


@linux_only
def test_a_system_without_user_namespaces_says_so(tree: Tree, tmp_path: Path) -> None:
    """But an administrator, who needs none, can have an overlay all the same."""
    need_overlay(tree.root, tmp_path / "state")
    off = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    administrator = ["unshare", "-Ur", "bash", "-c", off, "-"]
    assert asked(administrator, tree.root, tmp_path / "state") == ""
    nobody = [*administrator, "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"]
    answer = asked(nobody, tree.root, tmp_path / "state")
    assert answer == "No overlay: users may make no user namespaces here (EPERM), as in many containers."


@linux_only
def test_a_file_system_that_cannot_hold_layers_is_named(tree: Tree, tmp_path: Path) -> None:
    """Such as another overlay: that of a container, or of a job."""
    outer = Tree(tmp_path, name="outer")
    outer.commit()
    with layered(outer, tmp_path / "state" / "work") as job:
        wrapped = job.overlay.wrap([], str(outer.root))
        answer = asked(wrapped, tree.root, outer.root / "state")
        assert answer.startswith("No overlay: ")
        assert "overlay" in answer.removeprefix("No overlay: ")
