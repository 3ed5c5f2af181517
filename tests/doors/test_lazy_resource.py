"""What is opened behind a greeting: once, for all who wait, and closed by whoever opened it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from laneway.base.errors import SessionClosed, StoreError
from laneway.doors.lazy_resource import LazyResource


class FakeResource:
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
        yield "resource"
        self.noted.append("closed")


async def test_all_who_wait_get_the_same_resource_in_the_order_in_which_they_came() -> None:
    """Also whoever comes when it has just opened, and those who waited have not gone on yet."""
    resource = FakeResource()
    lazy = LazyResource(resource.open)
    served: list[int] = []

    async def serve(number: int) -> None:
        assert await lazy.wait_open() == "resource"
        served.append(number)

    async with asyncio.timeout(10):
        first = [asyncio.ensure_future(serve(number)) for number in range(3)]
        await asyncio.sleep(0)
        assert lazy.open_now is None
        resource.may_open.set()
        while lazy.open_now is None:
            await asyncio.sleep(0)
        await asyncio.gather(*first, serve(3))
        await lazy.aclose()
    assert served == [0, 1, 2, 3]
    assert resource.noted == ["opening", "closed"]


async def test_what_keeps_it_from_opening_is_raised_for_everybody_and_at_the_end() -> None:
    """Nobody is left waiting, and the command that ends hears it, too."""
    resource = FakeResource(StoreError("The disk is full."))
    lazy = LazyResource(resource.open)
    waiting = [asyncio.ensure_future(lazy.wait_open()) for _ in range(2)]
    resource.may_open.set()
    async with asyncio.timeout(10):
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [str(each) for each in found] == ["The disk is full."] * 2
        assert lazy.open_now is None
        with pytest.raises(StoreError, match="The disk is full"):
            await lazy.wait_open()
        with pytest.raises(StoreError, match="The disk is full"):
            await lazy.aclose()


async def test_a_failure_that_nobody_asked_about_is_still_raised_at_the_end() -> None:
    """Begun, and nobody came."""
    resource = FakeResource(StoreError("The disk is full."))
    lazy = LazyResource(resource.open)
    lazy.begin()
    resource.may_open.set()
    with pytest.raises(StoreError, match="The disk is full"):
        await lazy.aclose()


async def test_a_bug_while_it_opens_leaves_nobody_waiting() -> None:
    """It is raised where the task is waited for; requests end at once."""
    resource = FakeResource(ZeroDivisionError())
    lazy = LazyResource(resource.open)
    waiting = asyncio.ensure_future(lazy.wait_open())
    resource.may_open.set()
    async with asyncio.timeout(10):
        await asyncio.wait((waiting,))
        assert waiting.cancelled()
        with pytest.raises(ZeroDivisionError):
            await lazy.aclose()


async def test_a_request_that_is_given_up_does_not_stop_the_opening() -> None:
    """The others still wait for it."""
    resource = FakeResource()
    lazy = LazyResource(resource.open)
    given_up, waiting = (asyncio.ensure_future(lazy.wait_open()) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    resource.may_open.set()
    async with asyncio.timeout(10):
        assert await waiting == "resource"
        await lazy.aclose()
    assert resource.noted == ["opening", "closed"]


async def test_a_resource_that_nobody_wanted_is_never_opened() -> None:
    """A client that hangs up before it says anything costs nothing."""
    resource = FakeResource()
    await LazyResource(resource.open).aclose()
    assert resource.noted == []


async def test_what_is_closed_is_not_opened_for_whoever_comes_late() -> None:
    """A request that was read before the end, and is served behind it."""
    resource = FakeResource()
    lazy = LazyResource(resource.open)
    await lazy.aclose()
    lazy.begin()
    with pytest.raises(SessionClosed, match="Laneway is shutting down"):
        await lazy.wait_open()
    await lazy.aclose()
    assert resource.noted == []
