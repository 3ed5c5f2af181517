"""Hearing that an inbox was written, on a real file system; and looking, where nobody tells."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.core.background import TaskSet
from laneway.mail.watch import LOOK_S, InboxWatch, Inotify, Looking, watch
from laneway.testing.clock import HandClock
from laneway.testing.mail_dialects import DIALECTS
from tests.core.support import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


class WatchRecorder:
    """What a watch told."""

    def __init__(self) -> None:
        self.mail: list[str | None] = []
        self.moves = 0

    def on_moved(self) -> None:
        self.moves += 1


@asynccontextmanager
async def listening(folder: Path) -> AsyncIterator[tuple[Inotify, WatchRecorder]]:
    recorder = WatchRecorder()
    hears = Inotify(recorder.mail.append, recorder.on_moved)
    try:
        hears.aim(folder)
        yield hears, recorder
    finally:
        hears.close()


def put(path: Path, text: str = "[]") -> None:
    """As every program writes an inbox: beside it, then in its place."""
    beside = path.with_name(path.name + ".tmp")
    beside.write_text(text)
    beside.rename(path)


def make(folder: Path) -> None:
    folder.mkdir(parents=True)


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def queue_size() -> int:
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


async def heard(recorder: WatchRecorder, name: str | None) -> None:
    await until(lambda: name in recorder.mail)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "teams" / "crew" / "inboxes"
    made.mkdir(parents=True)
    return made


# ── inotify ────────────────────────────────────────────────────────────────


@linux
async def test_an_inbox_that_is_written_is_heard_by_its_name(folder: Path) -> None:
    """Renamed into place or written in place; what is no inbox is not worth a word."""
    async with listening(folder) as (_, recorder):
        (folder / "codex.json.lock").mkdir()
        (folder / "codex.lock").write_text("1")
        put(folder / "codex.json")
        (folder / "bob.json").write_text("[]")
        await heard(recorder, "bob.json")
        assert recorder.mail == ["codex.json", "bob.json"]


@linux
@pytest.mark.parametrize("program", sorted(DIALECTS))
async def test_whoever_writes_is_heard(folder: Path, program: str) -> None:
    """Claude Code, ATM 0.46 and ATM 1.x each have their own way of putting a file in place."""
    inbox = folder / "codex.json"
    await asyncio.to_thread(DIALECTS[program].append, inbox, "bob", "one")
    async with listening(folder) as (_, recorder):
        await asyncio.to_thread(DIALECTS[program].append, inbox, "bob", "two")
        await heard(recorder, "codex.json")


@linux
@pytest.mark.parametrize("missing", [1, 2])
async def test_a_folder_that_is_not_there_yet_is_heard_when_it_comes(folder: Path, missing: int) -> None:
    """The team's, or its inboxes': whoever hears of the one aims again."""
    chain = [folder, folder.parent]
    for each in chain[:missing]:
        each.rmdir()
    async with listening(folder) as (hears, recorder):
        for each in reversed(chain[:missing]):
            recorder.moves = 0
            each.mkdir()
            await until(lambda: recorder.moves)
            hears.aim(folder)
        put(folder / "codex.json")
        await heard(recorder, "codex.json")


@linux
async def test_a_folder_that_comes_while_it_is_looked_for_is_found(folder: Path) -> None:
    """Aiming at what is there is aiming at it, whatever was there a moment before."""
    remove(folder.parent)
    async with listening(folder) as (hears, recorder):
        make(folder)
        hears.aim(folder)
        put(folder / "codex.json")
        await heard(recorder, "codex.json")


@linux
async def test_a_folder_that_is_removed_and_made_anew_is_found_again(folder: Path) -> None:
    """As when Claude Code ends a session and begins another."""
    async with listening(folder) as (hears, recorder):
        remove(folder.parent)
        await until(lambda: recorder.moves)
        hears.aim(folder)
        make(folder)
        await until(lambda: recorder.moves >= 2)
        hears.aim(folder)
        put(folder / "codex.json")
        await heard(recorder, "codex.json")


@linux
async def test_aiming_again_finds_the_new_folder_though_nobody_told(folder: Path) -> None:
    """A folder further up was renamed, which the watch does not hear: the next round puts it right."""
    async with listening(folder) as (hears, recorder):
        folder.parent.rename(folder.parent.with_name("crew.deleted-1"))
        make(folder)
        hears.aim(folder)
        put(folder / "codex.json")
        await heard(recorder, "codex.json")


@linux
async def test_another_team_is_heard_after_aiming_at_it_and_the_first_no_longer(folder: Path) -> None:
    """A session that moves takes its watch along."""
    other = folder.parent.parent / "others" / "inboxes"
    other.mkdir(parents=True)
    async with listening(folder) as (hears, recorder):
        hears.aim(other)
        put(folder / "codex.json")
        put(other / "bob.json")
        await heard(recorder, "bob.json")
        assert recorder.mail == ["bob.json"]


@linux
async def test_what_the_kernel_could_not_keep_means_that_anything_may_have_changed(folder: Path) -> None:
    """More changes than its queue holds, while nobody reads."""
    size = queue_size()
    if size > 50_000:
        pytest.skip("the queue of this machine is too long to fill")
    names = [folder / "a.json", folder / "b.json"]
    async with listening(folder) as (_, recorder):
        for number in range(size + 10):
            os.close(os.open(names[number % 2], os.O_WRONLY | os.O_CREAT))
        await heard(recorder, None)
        put(folder / "codex.json")
        await heard(recorder, "codex.json")


@linux
async def test_a_closed_watch_leaves_nothing_open(folder: Path) -> None:
    """Not the watch itself, not its place in the loop."""
    before = len(os.listdir("/proc/self/fd"))
    async with listening(folder):
        assert len(os.listdir("/proc/self/fd")) == before + 1
    assert len(os.listdir("/proc/self/fd")) == before


@linux
async def test_where_the_kernel_has_no_watch_left_the_folder_is_looked_at(folder: Path) -> None:
    """Every user has a limited number; mail goes on."""
    tasks, clock, recorder = TaskSet(), HandClock(), WatchRecorder()

    def make() -> InboxWatch:
        return watch(recorder.mail.append, recorder.on_moved, clock, tasks)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        poor = make()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    rich = make()
    assert (type(poor), type(rich)) == (Looking, Inotify)
    poor.close()
    rich.close()


# ── looking ────────────────────────────────────────────────────────────────


@asynccontextmanager
async def looking(
    folder: Path,
) -> AsyncIterator[tuple[Looking, WatchRecorder, Callable[[], Awaitable[None]]]]:
    recorder, clock, tasks = WatchRecorder(), HandClock(), TaskSet()
    looks = Looking(recorder.mail.append, clock, tasks)
    looks.aim(folder)

    async def tick() -> None:
        clock.advance(LOOK_S)
        await tasks.wait()

    yield looks, recorder, tick
    looks.close()
    await tasks.wait()


async def test_a_change_of_the_folder_is_seen_at_the_next_look(folder: Path) -> None:
    """And one without a change tells nothing."""
    async with looking(folder) as (_, recorder, tick):
        await tick()
        assert recorder.mail == []
        put(folder / "codex.json")
        await tick()
        await tick()
        assert recorder.mail == [None]


async def test_a_folder_that_comes_goes_and_comes_is_seen_each_time(folder: Path) -> None:
    """There is nothing to aim at again: it is looked for by its name."""
    remove(folder)
    async with looking(folder) as (_, recorder, tick):
        make(folder)
        await tick()
        remove(folder)
        await tick()
        make(folder)
        await tick()
        assert recorder.mail == [None, None, None]


async def test_aiming_again_forgets_nothing(folder: Path) -> None:
    """A round of the postman must not swallow a change that was not told yet."""
    async with looking(folder) as (looks, recorder, tick):
        put(folder / "codex.json")
        looks.aim(folder)
        await tick()
        assert recorder.mail == [None]
