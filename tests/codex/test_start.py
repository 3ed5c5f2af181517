"""Starts of Codex: several at once in a fresh home, one that never answers, cancelled and closed ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import EngineClosed, EngineLost, SessionClosed
from laneway.codex import running
from laneway.codex.engine import CodexEngine
from laneway.codex.relay import RelayEngine
from laneway.core.hub import Hub
from laneway.core.ports import Host, ThreadSpec
from laneway.testing.rehearse import rehearsal
from laneway.wire.peer import Raw
from tests.codex.transports import HandTransport, Request

AT_ONCE = 6
THREAD = "00000000-0000-7000-8000-000000000000"
SPEC = ThreadSpec(cwd=Path("/"), sandbox="read-only")


class Mute(HandTransport):
    """Answers the given methods, and nothing else."""

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self.is_asked = asyncio.Event()
        """Whether something has come that stays without an answer."""
        self._answers = answers

    def on_request(self, request: Request) -> None:
        if request["method"] in self._answers:
            self.send(id=request["id"], result={})
        else:
            self.is_asked.set()


class Slow(Mute):
    """Ends only when `may_stop` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stopping = asyncio.Event()
        self.may_stop = asyncio.Event()

    async def stop(self, own_end_s: float = 0.0) -> None:
        self.is_stopping.set()
        await self.may_stop.wait()
        await super().stop(own_end_s)


@pytest.mark.parametrize("answers", [(), ("initialize",), ("initialize", "config/read")])
async def test_whoever_waits_for_it_at_the_end_is_told_so_and_no_other_one_is_started(
    answers: tuple[str, ...],
) -> None:
    """An editor that goes while its session is opened would have to wait for a Codex that says nothing."""
    mute = Mute(*answers)
    engine = CodexEngine(mute.connect)
    async with asyncio.timeout(20):
        async with Hub(engine, LoopClock()) as hub:
            opening = [asyncio.ensure_future(hub.start("me", SPEC)) for _ in range(3)]
            await mute.is_asked.wait()
        for each in opening:
            with pytest.raises((EngineClosed, SessionClosed)):
                await each
        with pytest.raises(EngineClosed):
            await engine.link()
    assert (mute.started, mute.stopped) == (1, 1)


async def test_a_caller_who_gives_up_is_not_told_that_all_is_over() -> None:
    """A cancel is a cancel, and the next one may try again."""
    mute = Mute()
    engine = CodexEngine(mute.connect)
    for attempt in (1, 2):
        asking = asyncio.ensure_future(engine.link())
        await mute.is_asked.wait()
        mute.is_asked.clear()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (mute.started, mute.stopped) == (attempt, attempt)


async def test_a_caller_who_gives_up_leaves_the_start_to_those_who_still_wait() -> None:
    """Whoever gets ready for the first session is stopped at the end, before the engine is: no reason to
    end the Codex that a request waits for, and to start another."""
    mute = Mute()
    engine = CodexEngine(mute.connect)
    async with asyncio.timeout(20):
        first, *others = [asyncio.ensure_future(engine.link()) for _ in range(3)]
        await mute.is_asked.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (mute.started, mute.stopped) == (1, 0)
        mute.send(id=1, result={})
        links = {id(await each) for each in others}
        assert (len(links), mute.started, mute.stopped) == (1, 1, 0)
        await engine.aclose()
    assert (mute.started, mute.stopped) == (1, 1)


async def test_when_all_give_up_the_start_ends_and_whoever_comes_meanwhile_gets_another() -> None:
    """Never two at once: the next begins when the last has ended."""
    mute = Slow()
    engine = CodexEngine(mute.connect)
    async with asyncio.timeout(20):
        asking = [asyncio.ensure_future(engine.link()) for _ in range(2)]
        await mute.is_asked.wait()
        for each in asking:
            each.cancel()
        await mute.is_stopping.wait()
        late = asyncio.ensure_future(engine.link())
        for _ in range(10):
            await asyncio.sleep(0)
        assert mute.started == 1
        mute.is_asked.clear()
        mute.may_stop.set()
        await mute.is_asked.wait()
        assert (mute.started, mute.stopped) == (2, 1)
        assert [type(each) for each in await asyncio.gather(*asking, return_exceptions=True)] == [
            asyncio.CancelledError
        ] * 2
        await engine.aclose()
        with pytest.raises(EngineClosed):
            await late
    assert (mute.started, mute.stopped) == (2, 2)


async def test_a_closed_engine_starts_nothing_whatever_is_asked_of_it() -> None:
    """Neither kind of engine, neither one that never ran nor one whose Codex had ended."""
    mute = Mute("initialize")

    def ways(engine: CodexEngine | RelayEngine) -> list[Coroutine[Any, Any, object]]:
        host = cast("Host", None)
        calls: list[Coroutine[Any, Any, object]] = [
            engine.link(),
            engine.abilities(),
            engine.start(SPEC, host),
        ]
        if isinstance(engine, RelayEngine):
            return [*calls, engine.forward("tools/list", Raw(b"{}"))]
        return [
            *calls,
            engine.resume(THREAD, SPEC, host),
            engine.fork(THREAD, SPEC, host),
            engine.read(THREAD),
            engine.history(THREAD),
            engine.list_threads(),
            engine.models(),
            engine.call("thread/archive", {"threadId": THREAD}),
        ]

    for engine in (CodexEngine(mute.connect), RelayEngine(mute.connect)):
        await engine.aclose()
        for way in ways(engine):
            with pytest.raises(EngineClosed):
                await way
    assert mute.started == 0
    engine = CodexEngine(mute.connect)
    link = await engine.link()
    await link.aclose()
    await engine.aclose()
    for way in ways(engine):
        with pytest.raises(EngineClosed):
            await way
    assert mute.started == 1


async def test_those_that_start_at_once_in_a_fresh_home_all_get_up(caplog: pytest.LogCaptureFixture) -> None:
    """Left alone, all but one end: each wants to make the database. That is no news to anybody."""
    async with rehearsal() as here, AsyncExitStack() as stack:
        engines = [here.another_engine() for _ in range(AT_ONCE)]
        for engine in engines:
            stack.push_async_callback(engine.aclose)
        await asyncio.gather(*(engine.link() for engine in engines))
        assert [engine.is_running for engine in engines] == [True] * AT_ONCE
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_one_whose_database_cannot_be_made_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some tries, with its last words: it looks like one that fell over another."""
    pauses: list[int] = []

    def at_once(attempt: int) -> float:
        pauses.append(attempt)
        return 0.0

    monkeypatch.setattr(running, "backoff_s", at_once)
    async with rehearsal() as here:
        first = here.another_engine()
        await first.link()
        await first.aclose()
        for database in list(here.home.glob("*.sqlite")):
            database.unlink()
            database.mkdir()
        with pytest.raises(EngineLost, match="exit code 1") as lost:
            await here.engine.link()
    assert "state runtime" in lost.value.stderr_tail
    assert pauses == list(range(1, running.START_TRIES))
