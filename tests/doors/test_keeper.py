"""What is opened behind a greeting: once, for all who wait, and closed by whoever opened it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from laneway.base.errors import SessionClosed, StoreError
from laneway.doors.keeper import Keeper


class House:
    """Opens when it is told to; notes what became of it."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.may_open = asyncio.Event()
        self.noted: list[str] = []
        self._failure = failure

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        self.noted.append("opening")
        await self.may_open.wait()
        if self._failure is not None:
            raise self._failure
        yield "house"
        self.noted.append("closed")


async def test_all_who_wait_get_the_same_house_in_the_order_in_which_they_came() -> None:
    """Also whoever comes when it has just opened, and those who waited have not gone on yet."""
    house = House()
    keeper = Keeper(house.open)
    served: list[int] = []

    async def serve(number: int) -> None:
        assert await keeper.house() == "house"
        served.append(number)

    async with asyncio.timeout(10):
        first = [asyncio.ensure_future(serve(number)) for number in range(3)]
        await asyncio.sleep(0)
        assert keeper.house_now is None
        house.may_open.set()
        while keeper.house_now is None:
            await asyncio.sleep(0)
        await asyncio.gather(*first, serve(3))
        await keeper.aclose()
    assert served == [0, 1, 2, 3]
    assert house.noted == ["opening", "closed"]


async def test_what_keeps_it_from_opening_is_raised_for_everybody_and_at_the_end() -> None:
    """Nobody is left waiting, and the command that ends hears it, too."""
    house = House(StoreError("The disk is full."))
    keeper = Keeper(house.open)
    waiting = [asyncio.ensure_future(keeper.house()) for _ in range(2)]
    house.may_open.set()
    async with asyncio.timeout(10):
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [str(each) for each in found] == ["The disk is full."] * 2
        assert keeper.house_now is None
        with pytest.raises(StoreError, match="The disk is full"):
            await keeper.house()
        with pytest.raises(StoreError, match="The disk is full"):
            await keeper.aclose()


async def test_a_failure_that_nobody_asked_about_is_still_raised_at_the_end() -> None:
    """Begun, and nobody came."""
    house = House(StoreError("The disk is full."))
    keeper = Keeper(house.open)
    keeper.begin()
    house.may_open.set()
    with pytest.raises(StoreError, match="The disk is full"):
        await keeper.aclose()


async def test_a_bug_while_it_opens_leaves_nobody_waiting() -> None:
    """It is raised where the task is waited for; requests end at once."""
    house = House(ZeroDivisionError())
    keeper = Keeper(house.open)
    waiting = asyncio.ensure_future(keeper.house())
    house.may_open.set()
    async with asyncio.timeout(10):
        await asyncio.wait((waiting,))
        assert waiting.cancelled()
        with pytest.raises(ZeroDivisionError):
            await keeper.aclose()


async def test_a_request_that_is_given_up_does_not_stop_the_opening() -> None:
    """The others still wait for it."""
    house = House()
    keeper = Keeper(house.open)
    given_up, waiting = (asyncio.ensure_future(keeper.house()) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    house.may_open.set()
    async with asyncio.timeout(10):
        assert await waiting == "house"
        await keeper.aclose()
    assert house.noted == ["opening", "closed"]


async def test_a_house_that_nobody_wanted_is_never_opened() -> None:
    """A client that hangs up before it says anything costs nothing."""
    house = House()
    await Keeper(house.open).aclose()
    assert house.noted == []


async def test_what_is_closed_is_not_opened_for_whoever_comes_late() -> None:
    """A request that was read before the end, and is served behind it."""
    house = House()
    keeper = Keeper(house.open)
    await keeper.aclose()
    keeper.begin()
    with pytest.raises(SessionClosed, match="Laneway is shutting down"):
        await keeper.house()
    await keeper.aclose()
    assert house.noted == []
