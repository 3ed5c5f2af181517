"""Giving paths back: exactly, all or none, and back again."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from laneway.base.errors import ContentGone, TreeRefused, UsageError
from laneway.jobs.rollback.model import Outcome, Refusal
from laneway.jobs.rollback.rollbacks import Rollbacks
from tests.jobs.rollback.everything import edit_everything, litter, make_everything
from tests.jobs.trees import Tree, git_files, things


def test_every_kind_of_change_is_given_back_and_back_again(tree: Tree) -> None:
    """Byte for byte, with modes and folders; and what is redone is the same once more."""
    make_everything(tree)
    before = tree.snapshot()
    baseline = things(tree.root)
    edit_everything(tree)
    edited = things(tree.root)
    outcome = tree.roll_back(before)
    assert outcome.ending == "done"
    assert outcome.refused == ()
    assert things(tree.root) == baseline
    undone = tree.rollbacks.undo(outcome.rollback_id)
    assert undone.ending == "done"
    assert things(tree.root) == edited
    redone = tree.rollbacks.undo(undone.rollback_id)
    assert redone.paths == outcome.paths
    assert things(tree.root) == baseline
    assert litter(tree) == []
    assert [record.journal.undoes for record in tree.rollbacks.records()] == [
        "",
        outcome.rollback_id,
        undone.rollback_id,
    ]


def test_nothing_of_the_users_repository_is_written(tree: Tree) -> None:
    """A rollback is of files, not of git."""
    make_everything(tree)
    tree.git("add", "--all", ":!inner")
    before = tree.snapshot()
    edit_everything(tree)
    own = git_files(tree.root)
    tree.rollbacks.undo(tree.roll_back(before).rollback_id)
    assert git_files(tree.root) == own


def test_what_others_did_elsewhere_is_not_touched(tree: Tree) -> None:
    """Neither what was not committed before, nor what was written since on other paths."""
    tree.write("dirty.txt", "not committed\n")
    before = tree.snapshot()
    tree.write("src/b.txt", "by the job\n")
    tree.write("src/new.txt", "by the job\n")
    after = tree.snapshot()
    tree.write("src/person.txt", "by a person\n")
    tree.write("dirty.txt", "edited by a person\n")
    assert tree.roll_back(before, after).paths == ("src/b.txt", "src/new.txt")
    assert {path: thing.content for path, thing in things(tree.root).items() if thing.content} == {
        b"a.txt": b"one\n",
        b"src/b.txt": b"two\n",
        b"src/person.txt": b"by a person\n",
        b"dirty.txt": b"edited by a person\n",
    }


Edit = Callable[[Path], object]


@pytest.mark.parametrize(
    "edit",
    [
        lambda path: path.write_text("by a person\n"),
        lambda path: path.chmod(0o600),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.symlink_to("x")),
        lambda path: path.unlink() or os.mkfifo(path),  # type: ignore[func-returns-value]
        lambda path: (path.unlink(), path.mkdir()),
    ],
)
def test_a_path_that_was_edited_since_stands_in_the_way_of_all(tree: Tree, edit: Edit) -> None:
    """It is named, and nothing is written: not even the other paths."""
    before = tree.snapshot()
    tree.write("a.txt", "by the job\n")
    tree.write("src/b.txt", "by the job\n")
    after = tree.snapshot()
    edit(tree.root / "a.txt")
    there = set(os.listdir(tree.root)), (tree.root / "src/b.txt").read_text()
    outcome = tree.roll_back(before, after)
    assert outcome == Outcome(ending="refused", refused=(Refusal("a.txt", "edited"),))
    assert (set(os.listdir(tree.root)), (tree.root / "src/b.txt").read_text()) == there
    assert tree.rollbacks.records() == ()


def test_a_file_that_was_deleted_and_made_again_by_a_person_is_theirs(tree: Tree) -> None:
    """The job deleted it; what lies there now is not to be overwritten."""
    before = tree.snapshot()
    (tree.root / "a.txt").unlink()
    after = tree.snapshot()
    tree.write("a.txt", "by a person\n")
    assert tree.roll_back(before, after).refused == (Refusal("a.txt", "edited"),)
    assert (tree.root / "a.txt").read_text() == "by a person\n"


# ── merging ────────────────────────────────────────────────────────────────

LINES = [f"line {number}\n" for number in range(20)]


def lines(**changed: str) -> str:
    """The text of twenty lines, some of them changed: `l3="x"`."""
    return "".join(changed.get(f"l{number}", line.strip()) + "\n" for number, line in enumerate(LINES))


def test_work_of_others_in_the_same_file_is_kept_by_a_merge_if_asked_for(tree: Tree) -> None:
    """And an undo gives back both."""
    tree.write("x.txt", lines())
    before = tree.snapshot()
    tree.write_mode("x.txt", lines(l3="job"), 0o755)
    after = tree.snapshot()
    tree.write("x.txt", lines(l3="job", l15="person"))
    assert tree.roll_back(before, after).refused == (Refusal("x.txt", "edited"),)
    outcome = tree.roll_back(before, after, may_merge=True)
    assert (outcome.ending, outcome.merged) == ("done", ("x.txt",))
    assert (tree.root / "x.txt").read_text() == lines(l15="person")
    assert (tree.root / "x.txt").stat().st_mode & 0o777 == 0o644
    tree.rollbacks.undo(outcome.rollback_id)
    assert (tree.root / "x.txt").read_text() == lines(l3="job", l15="person")


def test_a_merge_that_leaves_something_in_dispute_is_none(tree: Tree) -> None:
    """The path is named, and nothing is written."""
    tree.write("x.txt", lines())
    tree.write("y.bin", b"\0one")
    before = tree.snapshot()
    tree.write("x.txt", lines(l3="job"))
    tree.write("y.bin", b"\0two")
    after = tree.snapshot()
    tree.write("x.txt", lines(l3="person"))
    tree.write("y.bin", b"\0three")
    outcome = tree.roll_back(before, after, may_merge=True)
    assert outcome.refused == (Refusal("x.txt", "edited"), Refusal("y.bin", "edited"))
    assert (tree.root / "x.txt").read_text() == lines(l3="person")


def test_changes_of_a_job_around_those_of_another_are_taken_back_one_by_one(tree: Tree) -> None:
    """The newest first; the other one's stay."""
    from laneway.jobs.rollback.model import Return, Step

    contents = [
        lines(),
        lines(l2="first"),
        lines(l2="first", l9="other"),
        lines(l2="first", l9="other", l17="again"),
    ]
    states = []
    for content in contents:
        tree.write("x.txt", content)
        states.append(tree.shadow.states(tree.snapshot())["x.txt"])
    steps = (Step(states[0], states[1]), Step(states[2], states[3]))
    outcome = tree.rollbacks.roll_back([Return("x.txt", steps)], tree.shadow, {}, may_merge=True)
    assert outcome.ending == "done"
    assert (tree.root / "x.txt").read_text() == lines(l9="other")


# ── folders ────────────────────────────────────────────────────────────────


def test_a_new_folder_stays_if_somebody_else_has_a_file_in_it(tree: Tree) -> None:
    """Or a folder, or git: only what is empty goes."""
    before = tree.snapshot()
    for name in ("shared", "repository", "empty/one/two", "with-empty"):
        tree.write(f"{name}/job.txt", "by the job\n")
    after = tree.snapshot()
    tree.write("shared/person.txt", "x\n")
    (tree.root / "repository/.git").mkdir()
    (tree.root / "with-empty/folder").mkdir()
    assert tree.roll_back(before, after).ending == "done"
    assert {path for path in things(tree.root) if not path.endswith(b".txt")} == {
        b"src",
        b"shared",
        b"repository",
        b"with-empty",
        b"with-empty/folder",
    }


def test_a_folder_that_was_empty_before_stays(tree: Tree) -> None:
    """It was there."""
    (tree.root / "empty/deeper").mkdir(parents=True)
    before = tree.snapshot()
    tree.write("empty/deeper/x", "x")
    assert tree.roll_back(before).ending == "done"
    assert (tree.root / "empty/deeper").is_dir()


def test_a_folder_in_the_place_of_a_file_is_refused_if_it_has_more_in_it(tree: Tree) -> None:
    """A person's file would be lost."""
    before = tree.snapshot()
    (tree.root / "a.txt").unlink()
    tree.write("a.txt/job", "x")
    after = tree.snapshot()
    tree.write("a.txt/person", "x")
    assert tree.roll_back(before, after).refused == (Refusal("a.txt", "folder"),)
    assert (tree.root / "a.txt/job").exists()


def test_empty_folders_in_the_place_of_a_file_are_no_obstacle(tree: Tree) -> None:
    """The job put files there, and deleted them again; an undo makes the folders again."""
    before = tree.snapshot()
    (tree.root / "a.txt").unlink()
    (tree.root / "a.txt/one/two").mkdir(parents=True)
    there = things(tree.root)
    outcome = tree.roll_back(before)
    assert (tree.root / "a.txt").read_text() == "one\n"
    assert tree.rollbacks.undo(outcome.rollback_id).ending == "done"
    assert things(tree.root) == there


def test_a_file_in_the_place_of_a_folder_is_refused(tree: Tree) -> None:
    """It is a person's; the job had deleted the folder."""
    before = tree.snapshot()
    shutil.rmtree(tree.root / "src")
    after = tree.snapshot()
    tree.write("src", "x")
    assert tree.roll_back(before, after).refused == (Refusal("src/b.txt", "folder", detail="src"),)


# ── what cannot be given back ──────────────────────────────────────────────


def test_what_is_too_large_to_be_kept_is_named(tree: Tree) -> None:
    """One that is new can be taken away, and an undo gives it back."""
    size = 17 * 1024 * 1024
    tree.write("old.bin", b"o" * size)
    before = tree.snapshot()
    tree.write("new.bin", b"n" * size)
    after = tree.snapshot()
    outcome = tree.roll_back(before, after)
    assert outcome.ending == "done"
    assert not (tree.root / "new.bin").exists()
    tree.rollbacks.undo(outcome.rollback_id)
    assert (tree.root / "new.bin").read_bytes() == b"n" * size
    tree.write("old.bin", b"x" * size)
    assert tree.roll_back(before).refused == (Refusal("old.bin", "not kept"),)


def test_pipes_are_named(tree: Tree) -> None:
    """They are neither made nor removed."""
    before = tree.snapshot()
    os.mkfifo(tree.root / "pipe")
    assert tree.roll_back(before).refused == (Refusal("pipe", "special"),)


def test_gits_own_is_never_written(tree: Tree) -> None:
    """Whatever a claim says."""
    from laneway.jobs.rollback.model import Return, Step
    from laneway.jobs.snapshots.model import ABSENT

    state = tree.shadow.states(tree.snapshot())["a.txt"]
    for path in (".git/hooks/x", "src/.git/config", ".GIT/x", "../x", "/x", "a//b", "", "src/../../x"):
        wanted = [Return(path, (Step(state, ABSENT),))]
        outcome = tree.rollbacks.roll_back(wanted, tree.shadow, {})
        assert outcome.refused == (Refusal(path, "name"),)


def test_a_content_that_is_gone_is_found_before_anything_is_written(tree: Tree) -> None:
    """Nothing is left behind, not even a journal."""
    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    (tree.root / "src/b.txt").unlink()
    after = tree.snapshot()
    shutil.rmtree(tree.root / ".git/objects")
    (tree.root / ".git/objects").mkdir()
    with pytest.raises(ContentGone):
        tree.roll_back(before, after)
    assert (tree.root / "a.txt").read_text() == "edited\n"
    assert [path.name for path in tree.rollbacks.folder.iterdir()] == ["gate"]


@pytest.mark.parametrize(
    "words", ["merge side", "rebase side", "cherry-pick side", "revert HEAD~1", "bisect start"]
)
@pytest.mark.parametrize("where", ["", "inner"])
def test_a_rollback_is_refused_while_a_person_is_in_the_middle_of_something(
    tree: Tree, words: str, where: str
) -> None:
    """Also in a repository inside the tree, if a path of it is to be given back."""
    repo = Tree(tree.root, name=where) if where else tree
    repo.write("a.txt", "base\n")
    repo.commit()
    repo.git("checkout", "--quiet", "-b", "side")
    repo.write("a.txt", "side\n")
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    for text in ("main\n", "more\n"):
        repo.write("a.txt", text)
        repo.commit()
    before = tree.snapshot()
    repo.write("x.txt", "by the job\n")
    after = tree.snapshot()
    with contextlib.suppress(subprocess.CalledProcessError):
        repo.git(*words.split())
    with pytest.raises(TreeRefused, match="in progress"):
        tree.roll_back(before, after)
    assert (repo.root / "x.txt").exists()


def test_an_unknown_rollback_cannot_be_undone(tree: Tree) -> None:
    """Nor anything that is no id."""
    for name in ("rollback-0", "../x", ""):
        with pytest.raises(UsageError, match="no rollback"):
            tree.rollbacks.undo(name)


def test_an_undo_is_refused_where_somebody_has_edited_since(tree: Tree) -> None:
    """Then it is all or none, too; and a merge may help."""
    tree.write("x.txt", lines())
    before = tree.snapshot()
    tree.write("x.txt", lines(l3="job"))
    outcome = tree.roll_back(before)
    tree.write("x.txt", lines(l15="person"))
    assert tree.rollbacks.undo(outcome.rollback_id).refused == (Refusal("x.txt", "edited"),)
    assert tree.rollbacks.undo(outcome.rollback_id, may_merge=True).ending == "done"
    assert (tree.root / "x.txt").read_text() == lines(l3="job", l15="person")


def test_a_rollback_of_nothing_is_done(tree: Tree) -> None:
    """Where all paths are as they were, there is nothing to write."""
    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    after = tree.snapshot()
    tree.write("a.txt", "one\n")
    assert tree.rollbacks.roll_back([], tree.shadow, {}) == Outcome(ending="done")
    assert tree.roll_back(before, after) == Outcome(ending="done")
    assert tree.rollbacks.records() == ()


def test_the_owner_of_a_file_stays(tree: Tree) -> None:
    """Where root runs Laneway, a file does not become root's."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(tree.root / "a.txt", 1234, 1234)
    before = tree.snapshot()
    (tree.root / "a.txt").write_text("edited\n")
    assert tree.roll_back(before).ending == "done"
    assert (tree.root / "a.txt").stat().st_uid == 1234


def test_rollbacks_of_a_tree_wait_for_each_other(tree: Tree) -> None:
    """Only one has the gate."""
    from laneway.base.errors import StoreError
    from laneway.jobs.rollback import changes
    from laneway.store.gates import gate

    before = tree.snapshot()
    tree.write("a.txt", "edited\n")
    after = tree.snapshot()
    tree.rollbacks.recover()
    tree.rollbacks.folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "PATIENCE_S", 0.05)
        with gate(tree.rollbacks.folder / "gate"), pytest.raises(StoreError, match="has held"):
            tree.roll_back(before, after)
    assert tree.roll_back(before, after).ending == "done"
    assert isinstance(tree.rollbacks, Rollbacks)
