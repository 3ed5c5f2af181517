"""Merges back: what is not in dispute is written, all or none, and can be undone; all else is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from laneway.base.errors import TreeRefused
from laneway.jobs.isolation.merge import Merged, Merges, kind_of
from laneway.jobs.snapshots.model import ABSENT, PathState, Unguarded
from laneway.jobs.snapshots.reading import MAX_KEPT_BYTES
from tests.jobs.isolation.support import Copied
from tests.jobs.trees import Thing, Tree, things

LINES = "".join(f"{number}\n" for number in range(20))


class Scene:
    """A tree, the copy in which a job works, and the person who goes on in the tree."""

    def __init__(self, tmp_path: Path) -> None:
        self.tree = Tree(tmp_path)
        self.tree.write("lines.txt", LINES)
        self.tree.write("a.txt", "a\n")
        self.tree.write("src/b.txt", "b\n")
        self.tree.write("bin", b"\0one")
        (self.tree.root / "link").symlink_to("a.txt")
        self.tree.commit()
        self.folder = tmp_path / "state"
        self.merges = Merges(self.folder / "merges", self.tree.root)
        self._job: Copied | None = None

    @property
    def job(self) -> Path:
        """Where the job works. Its baseline is the tree when this is first asked for."""
        if self._job is None:
            self._job = Copied(self.tree, self.folder / "job")
        return self._job.top

    @property
    def person(self) -> Path:
        return self.tree.root

    def merge(self, **more: object) -> Merged:
        assert self._job is not None
        return self.merges.merge(self._job.edits(), self.tree.shadow, **more)  # type: ignore[arg-type]

    def seen(self) -> dict[bytes, Thing]:
        return things(self.tree.root)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def replace(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def test_what_nobody_else_touched_becomes_as_the_job_left_it(scene: Scene) -> None:
    """Contents, modes, links, new and removed folders; and an undo gives every byte back."""
    job = scene.job
    before = scene.seen()
    edit(job / "lines.txt", "3\n", "three\n")
    (job / "a.txt").chmod(0o600)
    replace(job / "link", "src")
    (job / "bin").write_bytes(b"\0two")
    (job / "src/b.txt").unlink()
    (job / "src").rmdir()
    (job / "new/deep").mkdir(parents=True)
    (job / "new").chmod(0o750)
    (job / "new/deep/c.txt").write_text("c\n")
    after = things(job)
    merged = scene.merge(job_id="job-1")
    assert merged == Merged(
        is_done=True,
        paths=("a.txt", "bin", "lines.txt", "link", "new/deep/c.txt", "src/b.txt"),
        merge_id=merged.merge_id,
    )
    assert merged.sentence == ""
    assert scene.seen() == after
    assert scene.merges.of_job("job-1") == merged
    assert scene.merges.of_job("job-2") is None
    assert scene.merges.undo(merged.merge_id).ending == "done"
    assert scene.seen() == before


def test_texts_that_both_changed_are_merged_where_nothing_is_in_dispute(scene: Scene) -> None:
    """A mode that only one changed is kept as well."""
    edit(scene.job / "lines.txt", "3\n", "three\n")
    (scene.job / "lines.txt").chmod(0o600)
    edit(scene.person / "lines.txt", "15\n", "fifteen\n")
    merged = scene.merge()
    assert merged.is_done
    assert merged.combined == ("lines.txt",)
    both = LINES.replace("3\n", "three\n").replace("15\n", "fifteen\n")
    assert (scene.person / "lines.txt").read_text() == both
    assert (scene.person / "lines.txt").stat().st_mode & 0o777 == 0o600


def test_what_is_as_the_job_left_it_already_stays(scene: Scene) -> None:
    """Both did the same: also what cannot be merged."""
    for top in (scene.job, scene.person):
        (top / "bin").write_bytes(b"\0same")
        (top / "src/b.txt").unlink()
        (top / "new").write_text("new\n")
        replace(top / "link", "both")
    (scene.job / "a.txt").write_text("job\n")
    merged = scene.merge()
    assert merged.is_done
    assert merged.paths == ("a.txt",)
    assert merged.already == ("bin", "link", "new", "src/b.txt")


def test_what_others_did_on_other_paths_is_never_touched(scene: Scene) -> None:
    """Uncommitted work, also in a folder that the job removed."""
    (scene.person / "draft.txt").write_text("mine\n")
    (scene.job / "a.txt").write_text("job\n")
    (scene.job / "src/b.txt").unlink()
    (scene.job / "src").rmdir()
    (scene.person / "src/mine.txt").write_text("mine\n")
    assert scene.merge().is_done
    assert (scene.person / "draft.txt").read_text() == "mine\n"
    assert [path.name for path in (scene.person / "src").iterdir()] == ["mine.txt"]


def same_line(top: Path, who: str) -> None:
    edit(top / "lines.txt", "3\n", f"{who}\n")


CONFLICTS: list[tuple[str, str, Callable[[Path], object], Callable[[Path], object]]] = [
    ("lines.txt", "text", lambda job: same_line(job, "job"), lambda person: same_line(person, "me")),
    (
        "bin",
        "binary",
        lambda job: (job / "bin").write_bytes(b"\0j"),
        lambda me: (me / "bin").write_bytes(b"\0p"),
    ),
    ("new", "added", lambda job: (job / "new").write_text("j"), lambda me: (me / "new").write_text("p")),
    ("a.txt", "deleted", lambda job: (job / "a.txt").unlink(), lambda me: (me / "a.txt").write_text("p")),
    ("a.txt", "deleted", lambda job: (job / "a.txt").write_text("j"), lambda me: (me / "a.txt").unlink()),
    ("a.txt", "mode", lambda job: (job / "a.txt").chmod(0o600), lambda me: (me / "a.txt").chmod(0o755)),
    ("link", "link", lambda job: replace(job / "link", "j"), lambda me: replace(me / "link", "p")),
    ("a.txt", "link", lambda job: (job / "a.txt").write_text("j"), lambda me: replace(me / "a.txt", "p")),
]


@pytest.mark.parametrize(("path", "kind", "jobs", "persons"), CONFLICTS)
def test_a_conflict_is_named_and_then_nothing_is_written(
    scene: Scene,
    path: str,
    kind: str,
    jobs: Callable[[Path], object],
    persons: Callable[[Path], object],
) -> None:
    """Not on other paths, either. With that path left, the others are merged."""
    jobs(scene.job)
    (scene.job / "src/b.txt").write_text("job\n")
    (scene.job / "other").write_text("job\n")
    persons(scene.person)
    before = scene.seen()
    merged = scene.merge()
    assert [(each.path, each.kind) for each in merged.conflicts] == [(path, kind)]
    assert not merged.is_done
    assert merged.sentence.startswith(
        f"Nothing of the job's changes was merged, because they conflict: {path} ("
    )
    assert scene.seen() == before
    assert scene.merge(leave=(path,)).paths == ("other", "src/b.txt")


def test_a_link_of_the_person_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    """Neither as the last name nor on the way."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("b\n")
    (scene.job / "src/b.txt").write_text("job\n")
    (scene.job / "src/new.txt").write_text("job\n")
    (scene.person / "src/b.txt").unlink()
    (scene.person / "src").rmdir()
    (scene.person / "src").symlink_to(outside)
    merged = scene.merge()
    assert {each.path for each in merged.conflicts} == {"src/b.txt", "src/new.txt"}
    assert [path.name for path in outside.iterdir()] == ["b.txt"]
    assert (outside / "b.txt").read_text() == "b\n"


def test_a_folder_in_the_way_of_a_file_is_a_conflict(scene: Scene) -> None:
    (scene.job / "name").write_text("job\n")
    (scene.person / "name").mkdir()
    (scene.person / "name/mine").write_text("mine\n")
    merged = scene.merge()
    assert [(each.path, each.kind) for each in merged.conflicts] == [("name", "other")]
    assert "folder" in merged.sentence


def test_what_is_neither_file_nor_link_stays_with_the_job(scene: Scene) -> None:
    """A new pipe. But one that replaced a file is a conflict."""
    os.mkfifo(scene.job / "pipe")
    (scene.job / "other").write_text("job\n")
    merged = scene.merge()
    assert merged.is_done
    assert merged.left_out == (Unguarded("pipe", "pipe"),)
    (scene.job / "a.txt").unlink()
    os.mkfifo(scene.job / "a.txt")
    assert scene.merge().sentence.endswith("a.txt (it is no file and no link).")


def test_large_files_are_merged_and_given_back_as_well(scene: Scene) -> None:
    """They are in no shadow: new ones, changed ones, and what they replace."""
    large = b"x" * (MAX_KEPT_BYTES + 1)
    (scene.person / "large").write_bytes(large)
    job = scene.job
    before = scene.seen()
    (job / "large").write_bytes(large + b"job")
    (job / "new").write_bytes(large + b"new")
    (job / "same").write_bytes(large + b"new")
    after = things(job)
    merged = scene.merge()
    assert merged.paths == ("large", "new", "same")
    assert scene.seen() == after
    assert scene.merges.undo(merged.merge_id).ending == "done"
    assert scene.seen() == before


def test_nothing_is_merged_in_the_middle_of_a_merge_of_the_persons(scene: Scene) -> None:
    (scene.job / "a.txt").write_text("job\n")
    (scene.person / ".git/MERGE_HEAD").write_text("0" * 40 + "\n")
    with pytest.raises(TreeRefused, match="a merge in progress"):
        scene.merge()
    assert (scene.person / "a.txt").read_text() == "a\n"


class Cut(BaseException):
    """A kill, as far as the code can tell."""


def test_a_merge_that_is_cut_off_anywhere_is_finished_at_the_next_look(scene: Scene) -> None:
    """Before the journal nothing has happened; after it everything happens."""
    (scene.job / "a.txt").write_text("job\n")
    (scene.job / "new").write_text("job\n")
    (scene.job / "src/b.txt").unlink()
    before, after = scene.seen(), things(scene.job)
    steps: list[str] = []
    scene.merges = Merges(scene.folder / "trial", scene.person, watch=steps.append)
    assert scene.merges.undo(scene.merge().merge_id).ending == "done"
    number_of_steps = steps.index("tidy src/b.txt") + 1
    for cut_at in range(number_of_steps):
        left = cut_at

        def watch(step: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Cut

        scene.merges = Merges(scene.folder / f"merges-{cut_at}", scene.person, watch=watch)
        with pytest.raises(Cut):
            scene.merge(job_id="job-1")
        merges = Merges(scene.merges.folder, scene.person)
        merges.recover()
        merged = merges.of_job("job-1")
        assert scene.seen() == (after if merged else before)
        if merged:
            assert merges.undo(merged.merge_id).ending == "done"
        assert scene.seen() == before


def test_every_two_sides_have_a_kind() -> None:
    """Whatever they are."""
    file = PathState("file", 0o644, blob="1")
    changed = PathState("file", 0o644, blob="2")
    other = PathState("file", 0o755, blob="3")
    large = PathState("file", 0o644, fingerprint="sha256:1", size=1)
    assert kind_of(file, changed, PathState("file", 0o644, blob="3")) == "text"
    assert kind_of(file, changed, other) == "text"
    assert kind_of(file, PathState("file", 0o600, blob="1"), PathState("file", 0o755, blob="1")) == "mode"
    assert kind_of(file, changed, large) == "binary"
    assert kind_of(ABSENT, file, changed) == "added"
    assert kind_of(file, ABSENT, changed) == "deleted"
