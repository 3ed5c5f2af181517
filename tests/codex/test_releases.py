"""Releases of threads: recorded before, confirmed after, finished later after a kill."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import EngineLost, EngineRefused, StoreError, ThreadUnknown
from laneway.codex import locate, releases
from laneway.codex.engine import CodexEngine, codex_engine
from laneway.codex.releases import PendingReleases, Releases
from laneway.core.hub import Hub
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.store.releases import ReleaseFile, ReleaseFiles
from laneway.testing.rehearse import Rehearsal, rehearsal
from tests.codex.test_unanswered import MAIN, Scripted
from tests.codex.transports import Request
from tests.core.support import until

SPEC = ThreadSpec(cwd=Path("/"), sandbox="read-only")
DEADLINE_S = 60


class Watched:
    """Records of releases in a folder; `count` is their number."""

    def __init__(self, root: Path) -> None:
        self.folder, home = root / "releases", root / "home"
        home.mkdir()
        self.files = ReleaseFiles(self.folder, home)

    @property
    def count(self) -> int:
        return len(os.listdir(self.folder)) if self.folder.exists() else 0


# ── one release ────────────────────────────────────────────────────────────


async def test_a_release_is_recorded_before_codex_is_asked_and_until_it_has_confirmed(tmp_path: Path) -> None:
    """Whatever is killed between the two calls, the record is there."""
    watched = Watched(tmp_path)
    seen: dict[str, int] = {}

    def answers(request: Request) -> bool:
        seen[request["method"]] = watched.count
        return True

    engine = CodexEngine(Scripted(answers).connect, releases=watched.files)
    async with asyncio.timeout(DEADLINE_S), Hub(engine, LoopClock()) as hub:
        session = await hub.resume("me", MAIN, SPEC)
        await session.close()
        assert (seen["thread/resume"], seen["thread/archive"], seen["thread/unarchive"]) == (0, 1, 1)
        assert watched.count == 0


@pytest.mark.parametrize(
    ("refused", "left"), [("thread/archive", 0), ("thread/unarchive", 1), ("thread/unsubscribe", 0)]
)
async def test_what_codex_refuses_leaves_a_record_only_where_the_thread_may_be_archived(
    tmp_path: Path, refused: str, left: int
) -> None:
    watched = Watched(tmp_path)
    codex = Scripted(lambda request: "no" if request["method"] == refused else True)
    engine = CodexEngine(codex.connect, releases=watched.files)
    async with asyncio.timeout(DEADLINE_S), Hub(engine, LoopClock()) as hub:
        session = await hub.resume("me", MAIN, SPEC)
        await session.close()
        assert watched.count == left


async def test_a_codex_that_dies_in_between_leaves_the_record(tmp_path: Path) -> None:
    """Unlocked: anybody may finish it, this process as well as the next."""
    watched = Watched(tmp_path)
    codex = Scripted(lambda request: request["method"] not in ("thread/archive", "thread/unarchive"))
    engine = CodexEngine(codex.connect, releases=watched.files)
    async with asyncio.timeout(DEADLINE_S):
        link = await engine.link()
        releasing = asyncio.ensure_future(Releases(watched.files).release(link, MAIN))
        while ("thread/unarchive", MAIN) not in codex.requests:
            await asyncio.sleep(0)
        assert watched.files.is_under_way(MAIN)
        link._on_end("killed by SIGKILL")
        with pytest.raises(EngineLost):
            await releasing
        assert not watched.files.is_under_way(MAIN)
        (left,) = watched.files.leftovers()
        left.remove()
        await engine.aclose()


async def test_a_release_that_is_given_up_before_codex_was_asked_leaves_no_record(tmp_path: Path) -> None:
    """A slow disk, and nobody who waits for it."""
    watched = Watched(tmp_path)
    has_begun, may_end = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    class SlowDisk(ReleaseFiles):
        def begin(self, thread_id: str) -> ReleaseFile:
            record = super().begin(thread_id)
            loop.call_soon_threadsafe(has_begun.set)
            asyncio.run_coroutine_threadsafe(may_end.wait(), loop).result()
            return record

    codex = Scripted(lambda request: True)
    engine = CodexEngine(codex.connect)
    async with asyncio.timeout(DEADLINE_S):
        link = await engine.link()
        slow = Releases(SlowDisk(watched.folder, tmp_path / "home"))
        releasing = asyncio.ensure_future(slow.release(link, MAIN))
        await has_begun.wait()
        releasing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await releasing
        may_end.set()
        while watched.count:
            await asyncio.sleep(0)
        await engine.aclose()
    assert ("thread/archive", MAIN) not in codex.requests


async def test_a_disk_that_takes_no_record_keeps_nobody_out_of_the_thread(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread is given up all the same, and the log says what is missing."""

    class FullDisk(ReleaseFiles):
        def begin(self, thread_id: str) -> ReleaseFile:
            raise StoreError("There is no space left.")

        def leftovers(self) -> list[ReleaseFile]:
            raise StoreError("It cannot be read.")

        def is_under_way(self, thread_id: str) -> bool:
            raise StoreError("It cannot be read.")

    codex = Scripted(lambda request: True)
    engine = CodexEngine(codex.connect, releases=FullDisk(tmp_path, tmp_path))
    async with asyncio.timeout(DEADLINE_S), Hub(engine, LoopClock()) as hub:
        session = await hub.resume("me", MAIN, SPEC)
        await session.close()
    assert codex.requests[-2:] == [("thread/archive", MAIN), ("thread/unarchive", MAIN)]
    warned = {record.message for record in caplog.records if record.levelno >= logging.WARNING}
    assert any("no space left" in message for message in warned), warned


# ── what others left, in the real Codex ────────────────────────────────────


class Left:
    """A real thread with words in it, closed, in a home whose records are ours to write."""

    def __init__(self, here: Rehearsal, folder: Path, thread_id: str, path: Path) -> None:
        self.here = here
        self.thread_id = thread_id
        self.live = path
        self.archived = here.home / "archived_sessions" / path.name
        self.folder = folder
        self.files = ReleaseFiles(folder, here.home)

    def record(self, age_s: float = 0.0) -> None:
        """As a process that was killed leaves it."""
        ReleaseFiles(self.folder, self.here.home, lambda: time.time() - age_s).begin(self.thread_id).leave()

    async def archive(self) -> None:
        """By a Codex of its own."""
        other = self.here.another_engine()
        await other.call("thread/archive", {"threadId": self.thread_id})
        await other.aclose()

    @asynccontextmanager
    async def laneway(self, records: PendingReleases | None = None) -> AsyncIterator[CodexEngine]:
        """A Laneway that starts now."""
        environment = {**os.environ, "CODEX_HOME": str(self.here.home)}
        engine = codex_engine(locate.find(), environment, releases=records or self.files)
        try:
            async with asyncio.timeout(DEADLINE_S):
                yield engine
        finally:
            await engine.aclose()

    async def listed(self, engine: CodexEngine) -> bool:
        return self.thread_id in [info.thread_id for info in (await engine.list_threads()).threads]

    async def resumes(self, engine: CodexEngine) -> str:
        async with Hub(engine, LoopClock()) as hub:
            session = await hub.resume("me", self.thread_id, SPEC)
            turn = session.say(TurnSpec(parts=(TextPart("%say again"),)))
            return (await turn.result()).text

    async def wait_finished(self) -> None:
        await until(lambda: not os.listdir(self.folder))


@pytest.fixture
async def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Left]:
    monkeypatch.setattr(releases, "SETTLE_S", 0.0)
    async with rehearsal() as here:
        other = here.another_engine()
        async with Hub(other, LoopClock()) as hub:
            session = await hub.start("me", ThreadSpec(cwd=here.work, sandbox="read-only"))
            await session.say(TurnSpec(parts=(TextPart("%say before"),))).result()
            path = Path(session.info.native["thread"]["path"])
        yield Left(here, tmp_path / "releases", session.thread_id, path)


@pytest.mark.parametrize("way", ["start", "list", "resume"])
async def test_a_thread_that_was_left_archived_is_back(left: Left, way: str) -> None:
    """By the start alone, and for whoever asks first."""
    await left.archive()
    left.record()
    async with left.laneway() as engine:
        if way == "list":
            assert await left.listed(engine)
        elif way == "resume":
            assert await left.resumes(engine) == "again"
        else:
            await engine.link()
        await left.wait_finished()
    assert (left.live.exists(), left.archived.exists()) == (True, False)


@pytest.mark.parametrize("killed_in", ["archive", "unarchive"])
async def test_a_thread_is_back_though_codex_was_killed_as_it_moved_its_file(
    left: Left, killed_in: str
) -> None:
    """It moves the file first and writes that down afterwards: by itself it never has the thread again."""
    if killed_in == "archive":
        left.archived.parent.mkdir(exist_ok=True)
        shutil.move(left.live, left.archived)
    else:
        await left.archive()
        shutil.move(left.archived, left.live)
    async with left.laneway(ReleaseFiles(left.folder / "none", left.here.home)) as engine:
        with pytest.raises((EngineRefused, ThreadUnknown)):
            await left.resumes(engine)
    left.record()
    async with left.laneway() as engine:
        assert await left.listed(engine)
        assert await left.resumes(engine) == "again"
    assert (left.live.exists(), left.archived.exists()) == (True, False)
    assert os.listdir(left.folder) == []


async def test_what_the_user_archived_later_stays_archived(left: Left) -> None:
    """A release that was completed and never confirmed, and days later somebody archives the thread."""
    left.record(age_s=3600.0)
    await left.archive()
    async with left.laneway() as engine:
        assert not await left.listed(engine)
        with pytest.raises(EngineRefused, match="archived"):
            await left.resumes(engine)
    assert left.archived.exists()
    assert os.listdir(left.folder) == []


async def test_what_nobody_recorded_stays_archived(left: Left) -> None:
    await left.archive()
    async with left.laneway() as engine:
        assert not await left.listed(engine)
    assert left.archived.exists()


async def test_the_record_of_a_thread_that_is_gone_is_dropped(left: Left) -> None:
    """Deleted meanwhile."""
    left.record()
    other = left.here.another_engine()
    await other.call("thread/delete", {"threadId": left.thread_id})
    await other.aclose()
    async with left.laneway() as engine:
        await engine.link()
        await left.wait_finished()


async def test_a_release_whose_own_codex_may_still_be_at_it_is_looked_at_again(
    left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laneway is killed, and the next one starts before its Codex has done what it was asked for."""
    monkeypatch.setattr(releases, "SETTLE_S", 2.0 * DEADLINE_S)
    left.record()
    async with left.laneway() as engine:
        assert await left.listed(engine)
        assert os.listdir(left.folder) != []
        await left.archive()  # by that Codex, which dies before it can unarchive
        assert await left.listed(engine)
        await left.wait_finished()
    assert (left.live.exists(), left.archived.exists()) == (True, False)


async def test_a_thread_that_another_process_is_just_giving_up_is_waited_for(left: Left) -> None:
    """It is archived for an instant, and its process lives and brings it back."""
    await left.archive()
    releasing = left.files.begin(left.thread_id)
    async with left.laneway() as engine:
        resuming = asyncio.ensure_future(left.resumes(engine))
        other = left.here.another_engine()
        await other.call("thread/unarchive", {"threadId": left.thread_id})
        releasing.remove()
        await other.aclose()
        assert await resuming == "again"


async def test_nothing_is_asked_of_codex_where_nothing_was_left(tmp_path: Path) -> None:
    """A start, a list and a resume cost one look into a folder."""
    codex = Scripted(lambda request: True)
    engine = CodexEngine(codex.connect, releases=Watched(tmp_path).files)
    async with asyncio.timeout(DEADLINE_S), Hub(engine, LoopClock()) as hub:
        await hub.resume("me", MAIN, SPEC)
    methods: list[Any] = [method for method, _ in codex.requests]
    assert methods == ["initialize", "thread/resume"]
