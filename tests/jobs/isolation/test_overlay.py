"""Real overlays: what a worker does to the tree lands in the layer, and is read from there exactly."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from laneway.base.errors import TreeRefused
from laneway.jobs.snapshots.model import Unguarded
from laneway.jobs.snapshots.scan import MAX_DEPTH, MAX_IGNORED_BYTES
from tests.jobs.isolation.support import layered, linux_only
from tests.jobs.trees import Tree, git_files, things

pytestmark = linux_only


def test_edits_land_in_the_layer_and_are_told_exactly(tree: Tree, tmp_path: Path) -> None:
    """The tree itself is untouched: contents, modes, git's own."""
    tree.write("old/c.txt", "three\n")
    tree.write("old/deep/d.txt", "four\n")
    (tree.root / "link").symlink_to("a.txt")
    tree.commit()
    tree.write("untracked.txt", "mine\n")
    before = things(tree.root), git_files(tree.root)
    with layered(tree, tmp_path / "state" / "work") as job:
        job.sh(
            "echo more >> a.txt; rm src/b.txt; rm -r old; mkdir old; echo new > old/e.txt; "
            "ln -sfn untracked.txt link; chmod 600 untracked.txt; mkdir -p made/deep; echo x > made/deep/x; "
            "mkdir empty; touch same; rm same; git status --short"
        )
        assert job.changed() == {
            "a.txt": (b"one\n", b"one\nmore\n"),
            "src/b.txt": (b"two\n", "absent"),
            "old/c.txt": (b"three\n", "absent"),
            "old/deep/d.txt": (b"four\n", "absent"),
            "old/e.txt": ("absent", b"new\n"),
            "link": (b"a.txt", b"untracked.txt"),
            "untracked.txt": (b"mine\n", b"mine\n"),
            "made/deep/x": ("absent", b"x\n"),
        }
        edits = job.edits()
        modes = {change.path: (change.before.mode, change.after.mode) for change in edits.changes}
        assert modes["untracked.txt"] == (0o644, 0o600)
        assert set(edits.new_folders) == {"made/", "made/deep/", "empty/"}
        assert edits.removed_folders == ("old/deep/",)
        assert edits.git_writes == ()
        assert edits.left_out == ()
    assert (things(tree.root), git_files(tree.root)) == before


def test_a_file_that_was_opened_for_writing_and_not_changed_is_no_change(tree: Tree, tmp_path: Path) -> None:
    """The kernel copies it into the layer all the same."""
    with layered(tree, tmp_path / "state" / "work") as job:
        job.sh("touch a.txt; chmod 700 src; mv src/b.txt x; mv x src/b.txt")
        assert (job.overlay.upper(job.overlay.tree) / "a.txt").exists()
        assert job.changed() == {}


def test_kinds_change_into_each_other(tree: Tree, tmp_path: Path) -> None:
    """File to folder, folder to file, folder to link, file to pipe."""
    for name in ("to-file/a", "to-file/b/c", "to-link/a", "to-folder", "to-pipe"):
        tree.write(name, f"{name}\n")
    tree.commit()
    with layered(tree, tmp_path / "state" / "work") as job:
        job.sh(
            "rm -r to-file to-link to-folder to-pipe; echo now > to-file; ln -s a.txt to-link; "
            "mkdir to-folder; echo in > to-folder/in; mkfifo to-pipe"
        )
        assert job.changed() == {
            "to-file": ("absent", b"now\n"),
            "to-file/a": (b"to-file/a\n", "absent"),
            "to-file/b/c": (b"to-file/b/c\n", "absent"),
            "to-folder": (b"to-folder\n", "absent"),
            "to-folder/in": ("absent", b"in\n"),
            "to-link": ("absent", b"a.txt"),
            "to-link/a": (b"to-link/a\n", "absent"),
            "to-pipe": (b"to-pipe\n", "pipe"),
        }
        assert job.edits().removed_folders == ("to-file/", "to-file/b/", "to-link/")


def test_names_may_be_anything(tmp_path: Path) -> None:
    """In the tree, in its own path, and in that of the layer: commas, colons, quotes, no UTF-8."""
    tree = Tree(tmp_path, name='tr,ee:\\a "b" \n ü')
    odd = [b"a,b:c\\d", b"new\nline", b'"quoted"', b"caf\xe9", b" ", b"-rf", b"x" * 255]
    new = [b":(top)x", b":!y", b"!z", b"#w", b"t ", b"*.o", b"a\\"]
    for name in odd:
        with open(os.path.join(os.fsencode(tree.root), name), "w") as file:
            file.write("before\n")
    tree.commit()
    before = things(tree.root)
    with layered(tree, tmp_path / "sta,te:\\n" / "work") as job:
        job.python(
            f"import os\nfor name in {odd + new!r}:\n    open(name, 'a').write('after\\n')\n"
            "os.mkdir(b'f\\xffolder')\nopen(b'f\\xffolder/n\\xfe', 'w').write('new\\n')\nos.unlink(b'-rf')"
        )
        changed = {change.path: change for change in job.edits().changes}
        assert len(changed) == len(odd) + len(new) + 1
        assert changed['"caf\\351"'].after.kind == "file"
        assert changed['"f\\377older/n\\376"'].before.kind == "absent"
        assert changed["-rf"].after.kind == "absent"
    assert things(tree.root) == before


def test_what_git_ignores_is_in_place_and_what_is_written_there_stays_in_the_layer(
    tree: Tree, tmp_path: Path
) -> None:
    """Small ignored files are merged as they are recorded; folders and large ones are named."""
    tree.write(".gitignore", "node_modules/\n.env*\n*.log\n*.o\nbuild\n")
    tree.write("build/kept.txt", "tracked in an ignored folder\n")
    tree.git("add", "--force", "build/kept.txt")
    tree.commit()
    tree.write(".env", "SECRET=1\n")
    tree.write("node_modules/left-pad/index.js", "pad\n")
    with layered(tree, tmp_path / "state" / "work") as job:
        assert job.sh("cat .env node_modules/left-pad/index.js") == "SECRET=1\npad\n"
        job.sh(
            "echo SECRET=2 > .env; echo x >> node_modules/left-pad/index.js; echo y > node_modules/new; "
            f"head -c {MAX_IGNORED_BYTES + 1} /dev/zero > big.log; echo small > small.log; "
            "echo changed >> build/kept.txt; echo made > build/made.txt; "
            "mkdir dist; echo '/dist/' >> .gitignore; echo z > dist/z; echo z > dist/y"
        )
        edits = job.edits()
        assert {change.path for change in edits.changes} == {
            ".env",
            ".gitignore",
            "build/kept.txt",
            "build/made.txt",
            "small.log",
        }
        assert edits.left_out == (
            Unguarded("big.log", "too large"),
            Unguarded("dist/", "ignored"),
            Unguarded("node_modules/", "ignored"),
        )


def test_an_ignored_folder_that_is_deleted_is_named(tree: Tree, tmp_path: Path) -> None:
    tree.write(".gitignore", "node_modules/\n")
    tree.commit()
    tree.write("node_modules/a/b", "x\n")
    with layered(tree, tmp_path / "state" / "work") as job:
        job.sh("rm -r node_modules")
        assert job.edits().left_out == (Unguarded("node_modules/", "ignored"),)
        assert job.edits().changes == ()


def test_writes_to_gits_own_are_told_and_never_merged(tree: Tree, tmp_path: Path) -> None:
    """A commit; not a look that only freshens the index."""
    inner = Tree(tree.root / "vendor", name="inner")
    inner.write("x", "x\n")
    inner.commit()
    with layered(tree, tmp_path / "state" / "work") as job:
        job.sh("touch a.txt vendor/inner/x; git status --short; git diff; git -C vendor/inner status")
        assert job.edits().git_writes == ()
        job.sh("git add .; git -c user.name=x -c user.email=x@y commit -qm no --no-verify")
        job.sh("git -C vendor/inner tag no; git init -q made; echo m > made/m")
        edits = job.edits()
        assert {".git/refs/heads/main", ".git/index", ".git/objects/"} <= set(edits.git_writes)
        assert "vendor/inner/.git/refs/tags/no" in edits.git_writes
        assert not [path for path in edits.git_writes if path.startswith("made")]
        assert edits.left_out == (Unguarded("made/.git/", "new repository"),)
        assert [change.path for change in edits.changes] == ["made/m"]
    assert tree.git("log", "--format=%s") == "the first\n"


@pytest.mark.parametrize("kind", ["linked", "submodule"])
def test_a_repository_that_lies_elsewhere_has_a_layer_as_well(tree: Tree, tmp_path: Path, kind: str) -> None:
    """So that a commit of a worker that may write everywhere does not reach it, either."""
    if kind == "linked":
        tree.git("worktree", "add", "-q", "../other")
        work = Tree(tmp_path, name="other")
    else:
        origin = Tree(tmp_path, name="origin")
        origin.commit("of the submodule")
        tree.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin.root), "sub")
        tree.commit()
        work = Tree(tree.root, name="sub")
    before = git_files(tree.root)
    with layered(work, tmp_path / "state" / "work") as job:
        job.sh("echo x > new.txt; touch a.txt; git status --short")
        assert job.edits().git_writes == ()
        job.sh("git add .; git -c user.name=x -c user.email=x@y commit -qm no; git stash list")
        assert any("refs/heads" in path or "HEAD" in path for path in job.edits().git_writes)
        assert "new.txt" in job.changed()
    assert git_files(tree.root) == before


def test_a_file_that_a_person_saves_meanwhile_is_not_the_jobs(tree: Tree, tmp_path: Path) -> None:
    """In the tree below, also in a folder that the job replaces."""
    with layered(tree, tmp_path / "state" / "work") as job:
        tree.write("src/person.txt", "mine\n")
        tree.write("a.txt", "person\n")
        job.sh("rm -r src; mkdir src; echo j > src/job.txt")
        assert set(job.changed()) == {"src/b.txt", "src/job.txt"}
    assert (tree.root / "src/person.txt").read_text() == "mine\n"


def test_an_attempt_begins_with_an_empty_layer(tree: Tree, tmp_path: Path) -> None:
    with layered(tree, tmp_path / "state" / "work") as job:
        job.sh("echo x > a.txt; mkdir locked; echo y > locked/y; chmod 0 locked/y; chmod 0 locked")
        assert job.changed().keys() >= {"a.txt"}
        job.begin()
        assert job.sh("cat a.txt") == "one\n"
        assert job.changed() == {}


def test_folders_without_end_are_refused_and_removed(tree: Tree, tmp_path: Path) -> None:
    with layered(tree, tmp_path / "state" / "work") as job:
        job.python(f"import os\nfor _ in range({3 * MAX_DEPTH}):\n    os.mkdir('d')\n    os.chdir('d')")
        with pytest.raises(TreeRefused, match="within each other"):
            job.edits()


def test_a_tree_that_changes_below_does_no_harm(tree: Tree, tmp_path: Path) -> None:
    """Another job is merged while this one works: it sees the old files or the new ones, and no error."""
    for number in range(50):
        tree.write(f"many/{number}", "before\n")
    tree.commit()
    with layered(tree, tmp_path / "state" / "work") as job:
        script = "cat many/* >/dev/null; echo ready; read; for n in many/*; do echo job >>$n; done; ls many"
        words = job.overlay.wrap(["bash", "-ec", script], str(tree.root))
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
            for number in range(50):
                new = tree.write(f"many/new-{number}", "merged\n")
                new.replace(tree.root / "many" / str(number))
            out, _ = worker.communicate("go\n")
        assert (worker.returncode, len(out.split())) == (0, 50)
        changed = job.changed()
        assert len(changed) == 50
        assert {after for _, after in changed.values()} <= {b"before\njob\n", b"merged\njob\n"}
    assert {path.read_text() for path in (tree.root / "many").iterdir()} == {"merged\n"}
