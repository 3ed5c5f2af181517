"""Records of releases that have begun: found by whoever comes when their process has gone, and not before."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from laneway.base.errors import StoreError
from laneway.store.releases import HALF_WRITTEN_S, MAX_LEFTOVERS, ReleaseFile, ReleaseFiles
from tests.store.support import Worker

THREAD, OTHER = "01a1ec7f-0f3c-7170-8e53-54f06f405f39", "01a1ec7f-0f3c-7170-8e53-000000000000"


class Folders:
    def __init__(self, root: Path) -> None:
        self.folder, self.home = root / "releases", root / "codex"
        self.home.mkdir()

    def files(self, now: float = 1000.0) -> ReleaseFiles:
        return ReleaseFiles(self.folder, self.home, lambda: now)

    @property
    def names(self) -> list[str]:
        return os.listdir(self.folder)


@pytest.fixture
def here(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_a_release_is_on_the_disk_until_it_is_confirmed(here: Folders) -> None:
    """For its owner alone, with what people need to know."""
    record = here.files().begin(THREAD)
    (name,) = here.names
    path = here.folder / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(here.folder.stat().st_mode) == 0o700
    noted = {"threadId": THREAD, "codexHome": str(here.home), "beganAt": 1000.0, "pid": os.getpid()}
    assert msgspec.json.decode(path.read_bytes()) == noted
    record.remove()
    assert here.names == []


def test_nobody_takes_a_release_whose_process_lives(here: Folders) -> None:
    """It is under way, for others as for ourselves."""
    record = here.files().begin(THREAD)
    assert here.files().leftovers() == []
    assert here.files().is_under_way(THREAD)
    assert not here.files().is_under_way(OTHER)
    record.remove()
    assert not here.files().is_under_way(THREAD)


def test_what_is_left_is_found_by_one_and_until_that_one_leaves_it(here: Folders) -> None:
    """Of two who look, the second finds nothing; what the first cannot finish, the next one can."""
    here.files().begin(THREAD).leave()
    (mine,) = here.files().leftovers()
    assert (mine.thread_id, mine.began_at) == (THREAD, 1000.0)
    assert here.files().leftovers() == []
    assert here.files().is_under_way(THREAD)
    mine.leave()
    mine.leave()
    (mine,) = here.files().leftovers()
    mine.remove()
    assert here.files().leftovers() == []
    assert here.names == []


def test_a_release_is_left_when_its_process_is_killed(here: Folders) -> None:
    """Without anybody's help."""
    with Worker("release", here.folder, here.home, THREAD) as worker:
        assert worker.hear() == "begun"
        assert here.files().is_under_way(THREAD)
        assert here.files().leftovers() == []
        worker.kill()
        (found,) = here.files().leftovers()
        assert found.thread_id == THREAD
        found.remove()


def test_many_who_look_at_once_share_what_is_left(here: Folders) -> None:
    """Each is finished by one of them, none twice, and those who release meanwhile are not disturbed."""
    for number in range(20):
        here.files().begin(f"thread-{number}").leave()
    start = threading.Barrier(5)

    def look() -> list[ReleaseFile]:
        start.wait()
        return here.files().leftovers()

    def release() -> list[ReleaseFile]:
        start.wait()
        for number in range(20):
            here.files().begin(f"other-{number}").remove()
        return []

    with ThreadPoolExecutor(5) as pool:
        found = [pool.submit(work) for work in (look, look, look, look, release)]
        records = [record for each in found for record in each.result()]
    assert sorted(record.thread_id for record in records) == sorted(f"thread-{n}" for n in range(20))
    for record in records:
        record.remove()
    assert here.names == []


def test_releases_of_another_home_are_nobodys_here_and_gone_with_it(here: Folders, tmp_path: Path) -> None:
    """Rehearsals and tests have homes of their own, which vanish."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ReleaseFiles(here.folder, elsewhere).begin(THREAD).leave()
    assert here.files().leftovers() == []
    assert not here.files().is_under_way(THREAD)
    assert len(here.names) == 1
    elsewhere.rmdir()
    assert here.files().leftovers() == []
    assert here.names == []


def test_a_home_is_the_same_by_any_of_its_names(here: Folders, tmp_path: Path) -> None:
    """A link to it, or a path with dots."""
    (tmp_path / "link").symlink_to(here.home)
    ReleaseFiles(here.folder, tmp_path / "link").begin(THREAD).leave()
    (found,) = ReleaseFiles(here.folder, here.home / ".." / "codex").leftovers()
    found.remove()


def test_what_cannot_be_read_is_left_alone_while_it_may_still_be_written(here: Folders) -> None:
    """A process killed between the file and its content had not begun anything."""
    here.folder.mkdir()
    torn, foreign = here.folder / "release-1.json", here.folder / "notes.txt"
    torn.write_bytes(b'{"threadId":')
    foreign.write_text("of somebody else")
    os.utime(torn, (1000.0, 1000.0))
    assert here.files(1000.0).leftovers() == []
    assert len(here.names) == 2
    assert here.files(1000.0 + 2 * HALF_WRITTEN_S).leftovers() == []
    assert here.names == ["notes.txt"]


def test_no_more_are_taken_at_once_than_can_be_finished(here: Folders) -> None:
    """Each holds a descriptor."""
    for _ in range(MAX_LEFTOVERS + 1):
        here.files().begin(THREAD).leave()
    found = here.files().leftovers()
    assert len(found) == MAX_LEFTOVERS
    for record in found:
        record.remove()
    assert len(here.names) == 1


def test_where_nothing_was_ever_released_nothing_is_made(here: Folders) -> None:
    assert here.files().leftovers() == []
    assert not here.files().is_under_way(THREAD)
    assert not here.folder.exists()


def test_what_keeps_it_from_being_written_is_said_in_a_sentence(here: Folders) -> None:
    """And nothing is left half-written."""
    here.folder.write_text("in the way")
    with pytest.raises(StoreError, match=r"releases.*\.$"):
        here.files().begin(THREAD)
    with pytest.raises(StoreError, match=r"releases.*\.$"):
        here.files().leftovers()
