"""An engine that lanes share: opened once, ended after the last, usable again after that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from laneway.app.shared_engine import SharedEngine
from laneway.base.clock import LoopClock
from laneway.base.errors import BinaryError, EngineClosed
from laneway.core.hub import Hub
from laneway.core.offers import Offers
from laneway.testing.engine import HandEngine


class Opened:
    """Counts what is opened and closed, and can be told to fail or to wait."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.error: Exception | None = None
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.problem: str | None = None
        self.checks = 0
        self.shared = SharedEngine(self.open, Offers, self.check)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Hub]:
        self.opened += 1
        try:
            await self.may_open.wait()
            if self.error is not None:
                raise self.error
            async with Hub(HandEngine(), LoopClock()) as hub:
                yield hub
        finally:
            self.closed += 1

    async def check(self, shared: SharedEngine) -> str | None:
        self.checks += 1
        if self.error is not None:
            raise self.error
        return self.problem


async def test_many_at_once_open_it_once_and_the_last_one_closes_it() -> None:
    """Then it can be opened again."""
    here = Opened()
    hubs = await asyncio.gather(*(here.shared.acquire() for _ in range(3)))
    assert len({id(hub) for hub in hubs}) == 1
    await here.shared.release()
    await here.shared.release()
    assert (here.opened, here.closed) == (1, 0)
    await here.shared.release()
    assert (here.opened, here.closed) == (1, 1)
    await here.shared.acquire()
    assert (here.opened, here.closed) == (2, 1)
    await here.shared.aclose()
    assert here.closed == 2


@pytest.mark.parametrize("error", [BinaryError("no program"), RuntimeError("a bug")])
async def test_what_keeps_it_from_opening_is_raised_and_the_next_one_tries_again(error: Exception) -> None:
    """Nobody holds it then."""
    here = Opened()
    here.error = error
    with pytest.raises(type(error)):
        await here.shared.acquire()
    assert here.shared.holders == 0
    here.error = None
    await here.shared.acquire()
    assert here.shared.holders == 1
    await here.shared.aclose()


async def test_who_gives_up_while_it_opens_leaves_nothing_behind() -> None:
    """What had been opened by then is closed."""
    here = Opened()
    here.may_open.clear()
    opening = asyncio.ensure_future(here.shared.acquire())
    while not here.opened:
        await asyncio.sleep(0)
    opening.cancel()
    here.may_open.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert (here.shared.holders, here.closed) == (0, 1)


async def test_after_the_end_of_the_program_it_opens_no_more() -> None:
    """However late a lane comes."""
    here = Opened()
    await here.shared.aclose()
    with pytest.raises(EngineClosed):
        await here.shared.acquire()


async def test_a_problem_is_asked_for_until_there_is_none() -> None:
    """An error is one, too."""
    here = Opened()
    here.error = BinaryError("no program")
    assert await here.shared.problem() == "no program."
    here.error, here.problem = None, "Log in."
    assert await here.shared.problem() == "Log in."
    here.problem = None
    assert [await here.shared.problem() for _ in range(2)] == [None, None]
    assert here.checks == 3
