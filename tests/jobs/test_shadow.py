"""Snapshots: what is covered, what is said not to be, when things were changed, what is kept."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from laneway.base.errors import ContentGone, TreeRefused
from laneway.jobs.snapshots import scan
from laneway.jobs.snapshots.model import PathState, Snapshot
from tests.adversary.odd_files import bound_socket
from tests.jobs.trees import Tree, things


def test_a_snapshot_that_finds_nothing_new_is_the_same(tree: Tree) -> None:
    """And writes nothing: neither contents nor its index."""
    tree.snapshot()
    for path in (*tree.root.rglob("*"), tree.root):
        os.utime(path, ns=(1, 1))
    first = tree.snapshot()
    while (again := tree.snapshot()).tree != first.tree:
        first = again
    index = (tree.shadow.folder / "index").stat().st_mtime_ns
    second = tree.snapshot()
    timeless = {"started_at": 0, "ended_at": 0, "steady_at": 0}
    assert msgspec.structs.replace(second, **timeless) == msgspec.structs.replace(first, **timeless)
    assert second.started_at > first.started_at
    assert tree.shadow.changes(first, second) == ()
    assert index <= (tree.shadow.folder / "index").stat().st_mtime_ns


def test_a_snapshot_can_be_kept_as_text(tree: Tree) -> None:
    """The ledger keeps it."""
    made = tree.snapshot()
    assert msgspec.json.Decoder(Snapshot).decode(msgspec.json.encode(made)) == made
    assert len(msgspec.json.encode(made)) < 300
    assert made.head == tree.git("rev-parse", "HEAD").strip()
    assert made.files == 2
    assert made.started_at <= made.ended_at


def test_every_kind_of_change_is_seen(tree: Tree) -> None:
    """Added, edited, deleted, renamed, made a link, made a folder."""
    tree.write("gone.txt", "gone\n")
    tree.write("old/name.txt", "name\n")
    tree.write("becomes-link", "file\n")
    tree.write("becomes-folder", "file\n")
    (tree.root / "link").symlink_to("a.txt")
    before = tree.snapshot()
    tree.write("new.txt", "new\n")
    tree.write("a.txt", "edited\n")
    (tree.root / "gone.txt").unlink()
    (tree.root / "old").rename(tree.root / "new")
    (tree.root / "becomes-link").unlink()
    (tree.root / "becomes-link").symlink_to("/etc/passwd")
    (tree.root / "becomes-folder").unlink()
    tree.write("becomes-folder/x", "x\n")
    (tree.root / "link").unlink()
    (tree.root / "link").symlink_to("elsewhere")
    after = tree.snapshot()
    assert {change.path: tree.both(change) for change in tree.shadow.changes(before, after)} == {
        "new.txt": ("absent", b"new\n"),
        "a.txt": (b"one\n", b"edited\n"),
        "gone.txt": (b"gone\n", "absent"),
        "old/name.txt": (b"name\n", "absent"),
        "new/name.txt": ("absent", b"name\n"),
        "becomes-link": (b"file\n", b"/etc/passwd"),
        "becomes-folder": (b"file\n", "absent"),
        "becomes-folder/x": ("absent", b"x\n"),
        "link": (b"a.txt", b"elsewhere"),
    }
    assert tree.shadow.states(after, ["becomes-link", "nothing"]) == {
        "becomes-link": PathState("link", blob=tree.shadow.states(after)["becomes-link"].blob),
        "nothing": PathState(),
    }


@pytest.mark.skipif(os.uname().sysname == "Darwin", reason="the file system takes only UTF-8")
def test_names_may_have_any_bytes(tree: Tree) -> None:
    """And their text can be kept in JSON, and taken back."""
    names = [b"caf\xe9.txt", b"new\nline", b'"quoted"', b"back\\slash", "ünï/コード".encode(), b"-rf", b" "]
    (tree.root / "ünï").mkdir()
    before = tree.snapshot()
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tree.root), name))).write_text("x")
    changes = tree.shadow.changes(before, tree.snapshot())
    texts = [msgspec.json.Decoder(str).decode(msgspec.json.encode(change.path)) for change in changes]
    from laneway.jobs.snapshots.paths import bytes_of

    assert sorted(map(bytes_of, texts)) == sorted(names)


@pytest.mark.covers("J-a2.18")
def test_links_are_never_followed(tree: Tree, tmp_path: Path) -> None:
    """Neither to a folder outside, nor to one that was a folder of the tree before."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (tree.root / "away").symlink_to(outside)
    before = tree.snapshot()
    assert set(tree.shadow.states(before)) == {"a.txt", "src/b.txt", "away"}
    (tree.root / "src").rename(tree.root / "moved")
    (tree.root / "src").symlink_to(outside)
    assert set(tree.since(before)) == {"src", "src/b.txt", "moved/b.txt"}


def test_pipes_sockets_and_devices_are_noted_and_never_opened(tree: Tree) -> None:
    """Also one that takes the place of a file."""
    before = tree.snapshot()
    os.mkfifo(tree.root / "pipe")
    bound_socket(tree.root / "socket")
    (tree.root / "a.txt").unlink()
    os.mkfifo(tree.root / "a.txt")
    assert tree.since(before) == {
        "pipe": ("absent", "pipe"),
        "socket": ("absent", "socket"),
        "a.txt": (b"one\n", "pipe"),
    }


# ── what is not covered ────────────────────────────────────────────────────


@pytest.mark.covers("J-a2.8")
def test_ignored_folders_are_noted_as_unguarded(tree: Tree) -> None:
    """What comes and goes in them is nobody's change, also when the rule comes or goes."""
    tree.write(".gitignore", "node_modules\n*.big\n")
    tree.write("node_modules/x/index.js", "x\n")
    tree.write("x.big", "x" * 2_000_000)
    tree.write("small.big", "x")
    before = tree.snapshot()
    assert {left.path: left.why for left in tree.shadow.unguarded(before)} == {
        "node_modules/": "ignored",
        "x.big": "too large",
    }
    assert before.unguarded == 2
    tree.write("node_modules/y.js", "y\n")
    tree.write("x.big", "small now")
    assert tree.since(before) == {}
    tree.write(".gitignore", "")
    assert set(tree.since(before)) == {".gitignore"}


def test_a_folder_in_which_all_is_ignored_is_not_an_ignored_folder(tree: Tree) -> None:
    """New files in it are seen, also where git lists it among what it ignores."""
    tree.write(".gitignore", "*.log\n")
    tree.write("logs/deep/a.log", "x\n")
    before = tree.snapshot()
    tree.write("logs/deep/new.txt", "x\n")
    tree.write("logs/a.txt", "x\n")
    assert set(tree.since(before)) == {"logs/deep/new.txt", "logs/a.txt"}


def test_a_new_rule_hides_no_change(tree: Tree) -> None:
    """What was known stays known: edits and deletions of it are seen, in snapshot after snapshot."""
    tree.write("out/keep/a.txt", "a\n")
    tree.write("out/b.txt", "b\n")
    tree.write("out/c.txt", "c\n")
    before = tree.snapshot()
    tree.write(".gitignore", "out/\n")
    tree.write("out/b.txt", "edited\n")
    (tree.root / "out/c.txt").unlink()
    tree.write("out/new.txt", "unguarded\n")
    changes = {".gitignore", "out/b.txt", "out/c.txt"}
    assert set(tree.since(before)) == changes
    (tree.root / "out/keep/a.txt").unlink()
    (tree.root / "out/keep").rmdir()
    changes.add("out/keep/a.txt")
    tree.write("x", "x")
    assert set(tree.since(before)) == {*changes, "x"}
    tree.write("y", "y")
    assert set(tree.since(before)) == {*changes, "x", "y"}


def test_a_new_run_forgets_what_a_rule_ignores_by_now(tree: Tree) -> None:
    """Otherwise a folder that was ignored too late would be looked through for ever."""
    for number in range(5):
        tree.write(f"out/{number}", "x")
    tree.snapshot()
    tree.write(".gitignore", "out\n")
    assert tree.snapshot().files == 8
    assert tree.snapshot(is_baseline=True).files == 3


def test_tracked_files_in_an_ignored_folder_are_covered(tree: Tree) -> None:
    """No rule ignores what is tracked."""
    tree.write(".gitignore", "build\n")
    tree.write("build/tracked.c", "x\n")
    tree.write("build/objects/x.o", "x\n")
    tree.git("add", "--force", "build/tracked.c")
    before = tree.snapshot()
    tree.write("build/tracked.c", "edited\n")
    tree.write("build/objects/x.o", "edited\n")
    assert set(tree.since(before)) == {"build/tracked.c"}


@pytest.mark.covers("J-a2.8")
def test_so_many_ignored_files_are_included_and_no_more(tree: Tree) -> None:
    """Which ones does not change while they are there."""
    tree.write(".gitignore", "*.pyc\n")
    for number in range(1010):
        tree.write(f"cache/{number:04}.pyc", "x")
    before = tree.snapshot()
    assert before.files == 1003
    assert {left.why for left in tree.shadow.unguarded(before)} == {"too many"}
    for number in range(20):
        tree.write(f"cache/{number:04}-earlier.pyc", "x")
    (tree.root / "cache/0001.pyc").unlink()
    after = tree.snapshot()
    assert after.files == 1003
    assert {change.path for change in tree.shadow.changes(before, after)} - {
        f"cache/{number:04}-earlier.pyc" for number in range(20)
    } == {"cache/0001.pyc"}


def test_rules_of_the_user_are_known(tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the repository's own file, and of the file for all repositories."""
    rules = tmp_path / "mine"
    rules.write_text("secret/\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text(f"[core]\n\texcludesFile = {rules}\n")
    (tree.root / ".git/info/exclude").write_text("local/\n")
    tree.write("secret/x", "x")
    tree.write("local/x", "x")
    made = tree.snapshot()
    assert {left.path for left in tree.shadow.unguarded(made)} == {"secret/", "local/"}


@pytest.mark.covers("J-a2.23")
def test_too_many_files_are_refused(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sentence; the last snapshot stays what it is."""
    before = tree.snapshot()
    monkeypatch.setattr(scan, "MAX_FILES", 5)
    for number in range(6):
        tree.write(str(number), "x")
    with pytest.raises(TreeRefused, match="more than 5 files"):
        tree.snapshot()
    monkeypatch.undo()
    assert len(tree.since(before)) == 6


def test_very_deep_folders_are_noted(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """And looked into no further."""
    monkeypatch.setattr(scan, "MAX_DEPTH", 3)
    tree.write("1/2/3/seen", "x")
    tree.write("1/2/3/4/not-seen", "x")
    made = tree.snapshot()
    assert [(left.path, left.why) for left in tree.shadow.unguarded(made)] == [("1/2/3/4/", "too deep")]
    assert "1/2/3/seen" in tree.shadow.states(made)


def test_our_own_folders_in_the_tree_are_left_out(tmp_path: Path) -> None:
    """A home that is a repository has Laneway's state in it."""
    from laneway.jobs.shadow import Shadow

    tree = Tree(tmp_path)
    jobs = tree.root / ".local/state/laneway/jobs"
    shadow = Shadow(jobs / "trees/1/shadow", tree.root, ours=(jobs,))
    tree.write("a", "a")
    before = shadow.snapshot()
    (jobs / "job").mkdir()
    (jobs / "job/events").write_text("x")
    assert shadow.changes(before, shadow.snapshot()) == ()


# ── folders and times ──────────────────────────────────────────────────────


def test_folders_are_known_with_their_modes(tree: Tree) -> None:
    """Also empty ones and ignored ones: a rollback removes none that was there before."""
    tree.write(".gitignore", "node_modules/\n")
    (tree.root / "empty/deeper").mkdir(parents=True)
    (tree.root / "node_modules").mkdir()
    (tree.root / "empty").chmod(0o700)
    usual = (tree.root / "src").stat().st_mode & 0o777
    folders = tree.shadow.folders(tree.snapshot())
    assert folders.pop("/") == tree.root.stat().st_mode & 0o777
    assert folders == {"src/": usual, "empty/": 0o700, "empty/deeper/": usual, "node_modules/": usual}


def test_changes_have_the_time_at_which_they_were_made(tree: Tree) -> None:
    """By the file system's clock; of what is gone or moved with its folder there is a bound."""
    tree.write("moved/c.txt", "c\n")
    tree.write("gone.txt", "c\n")
    before = tree.snapshot(is_baseline=True)
    began = time.time() - 0.1
    tree.write("a.txt", "edited\n")
    edited = time.time()
    (tree.root / "gone.txt").unlink()
    (tree.root / "moved").rename(tree.root / "new")
    ended = time.time()
    changes = {change.path: change for change in tree.shadow.changes(before, tree.snapshot())}
    at = changes["a.txt"].changed_at
    assert at is not None
    assert began <= at <= edited
    for path in ("gone.txt", "moved/c.txt"):
        assert changes[path].changed_at is None
        latest = changes[path].latest
        assert latest is not None
        assert began <= latest <= ended


def test_a_folder_in_the_place_of_a_file_tells_when_the_file_had_gone(tree: Tree) -> None:
    """Whatever happened later beside it."""
    before = tree.snapshot(is_baseline=True)
    (tree.root / "a.txt").unlink()
    (tree.root / "a.txt").mkdir()
    gone = (tree.root / "a.txt").stat().st_ctime
    while tree.write("later", "x").stat().st_ctime <= gone + 0.05:
        (tree.root / "later").unlink()
    changes = {change.path: change for change in tree.shadow.changes(before, tree.snapshot())}
    assert changes["a.txt"].latest == pytest.approx(gone, abs=1e-6)


def test_times_are_kept_over_snapshots_that_saw_the_change_before(tree: Tree) -> None:
    """Two snapshots may be compared that were not taken one after the other."""
    before = tree.snapshot(is_baseline=True)
    tree.write("a.txt", "edited\n")
    (one,) = tree.shadow.changes(before, tree.snapshot())
    tree.write("x.txt", "x\n")
    other = {change.path: change for change in tree.shadow.changes(before, tree.snapshot())}
    assert other["a.txt"] == one


# ── keeping and reading ────────────────────────────────────────────────────


def test_many_contents_are_stored_in_one_pack(tree: Tree) -> None:
    """And can be read in one go."""
    before = tree.snapshot()
    for number in range(300):
        tree.write(f"many/{number}", f"{number}\n" * 50)
    after = tree.snapshot()
    packs = list((tree.shadow.folder / "repository/objects/pack").glob("*.pack"))
    assert len(packs) == 1
    states = [change.after for change in tree.shadow.changes(before, after)]
    assert sorted(data for _, data in tree.shadow.contents(states)) == sorted(
        f"{number}\n".encode() * 50 for number in range(300)
    )


def test_only_the_user_can_read_what_is_recorded(tree: Tree) -> None:
    """Few contents, each a file, and many in a pack: git leaves both readable for everybody by itself."""
    tree.snapshot()
    for number in range(150):
        tree.write(f"many/{number}.txt", f"{number}\n")
    tree.snapshot()
    kept = [path for path in tree.shadow.folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".pack" for path in kept)
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_a_damaged_index_costs_only_time(tree: Tree) -> None:
    """As does a missing one, or contents that somebody removed."""
    before = tree.snapshot()
    index = tree.shadow.folder / "index"
    for damage in (b"", b"\xff" * 100, index.read_bytes()[:-10]):
        index.write_bytes(damage)
        after = tree.snapshot()  # which times it notes depends on when it was begun anew
        assert tree.shadow.changes(before, after) == ()
        assert tree.shadow.states(after) == tree.shadow.states(before)
    for path in (tree.shadow.folder / "repository/objects").glob("??/*"):
        path.unlink()
    assert tree.shadow.states(tree.snapshot()).keys() == {"a.txt", "src/b.txt"}


def test_a_content_that_is_missing_or_damaged_is_told(tree: Tree) -> None:
    """It is never mistaken for something else."""
    tree.write("new.txt", "new\n")
    state = tree.shadow.states(tree.snapshot())["new.txt"]
    name = tree.shadow.folder / "repository/objects" / state.blob[:2] / state.blob[2:]
    name.chmod(0o600)
    name.write_bytes(b"damaged")
    with pytest.raises(ContentGone, match=state.blob[:12]):
        tree.shadow.read(state)
    name.unlink()
    with pytest.raises(ContentGone):
        tree.shadow.read(state)


def test_the_tree_as_recorded_is_the_tree(tree: Tree) -> None:
    """Every file and link, with content and mode."""
    tree.write_mode("x/run.sh", "#!/bin/sh\n", 0o750)
    tree.write("empty", "")
    (tree.root / "link").symlink_to("nowhere/at all")
    made = tree.snapshot()
    recorded = {
        path.encode(): (state.mode, tree.shadow.read(state))
        for path, state in tree.shadow.states(made).items()
    }
    there = {path: (thing.mode, thing.content) for path, thing in things(tree.root).items()}
    assert {path: there[path] for path in recorded} == recorded
    assert there.keys() - recorded.keys() == {b"src", b"x"}
