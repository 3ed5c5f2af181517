"""Giving threads back to the engine: a few at once, and none when the engine itself ends next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from laneway.base.errors import SessionClosed
from laneway.core.hub import MAX_RELEASES
from laneway.core.session import Session
from laneway.testing.engine import HandThread
from tests.core.support import ME, SPEC, Stage, stage, until


class Releases:
    """What the threads of one engine were asked, while a test holds their answers back."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.may_end = asyncio.Event()

    @property
    def under_way(self) -> int:
        return self.begun - self.ended


@asynccontextmanager
async def crowd(count: int) -> AsyncIterator[tuple[Stage, list[Session], Releases]]:
    """Sessions on an engine that takes its time with releases."""
    releases = Releases()

    class SlowThread(HandThread):
        async def release(self) -> None:
            releases.begun += 1
            await releases.may_end.wait()
            releases.ended += 1
            await super().release()

    async with stage() as here:
        here.engine.kind = SlowThread
        sessions = [(await here.session())[0] for _ in range(count)]
        yield here, sessions, releases
        releases.may_end.set()


async def test_no_more_threads_are_released_at_once_than_the_engine_takes() -> None:
    """Codex refuses what it is asked beyond its own queue, and such a thread would stay locked."""
    async with crowd(3 * MAX_RELEASES) as (here, sessions, releases):
        closing = [asyncio.ensure_future(session.close()) for session in sessions]
        await until(lambda: releases.begun == MAX_RELEASES)
        for _ in range(100):
            await asyncio.sleep(0)
        assert releases.under_way == MAX_RELEASES
        releases.may_end.set()
        await asyncio.gather(*closing)
        assert releases.ended == len(sessions)
        assert all(thread.is_released for thread in here.engine.threads.values())


async def test_when_the_engine_ends_next_a_session_that_closes_releases_nothing() -> None:
    """Whoever closes it, and though it is asked to; and nothing new begins."""
    async with crowd(3) as (here, sessions, releases):
        here.hub.begin_shutdown()
        await asyncio.gather(*(session.close() for session in sessions))
        assert releases.begun == 0
        with pytest.raises(SessionClosed):
            await here.hub.start(ME, SPEC)


async def test_releases_that_wait_when_the_end_begins_are_left_out() -> None:
    """Those that are under way are waited for: cut in half, a thread would stay archived."""
    async with crowd(3 * MAX_RELEASES) as (here, sessions, releases):
        closing: list[asyncio.Future[Any]] = [asyncio.ensure_future(session.close()) for session in sessions]
        await until(lambda: releases.begun == MAX_RELEASES)
        here.hub.begin_shutdown()
        ending = asyncio.ensure_future(here.hub.shutdown())
        await asyncio.sleep(0)
        assert not here.engine.is_closed
        releases.may_end.set()
        await ending
        await asyncio.gather(*closing)
        assert (releases.begun, releases.ended) == (MAX_RELEASES, MAX_RELEASES)
        assert here.engine.is_closed
