"""Work that nobody waits for: put together while it may wait, done at once when somebody does wait."""

from __future__ import annotations

import asyncio

from laneway.core.background import Chores, Drain


async def test_what_is_asked_for_together_is_done_once_and_at_once_if_somebody_waits() -> None:
    """A turn changes a record three times; the disk need not hear of each."""
    done: list[str] = []
    chores = Chores()

    async def work() -> None:
        done.append("written")

    drain = Drain(work, chores, "test")
    for _ in range(3):
        drain.stir()
        await asyncio.sleep(0)
    assert done == [], "nobody's call waits behind this"
    await drain.wait()
    assert done == ["written"]


async def test_what_nobody_waits_for_is_done_all_the_same() -> None:
    """And so is what is asked for during it."""
    done: list[str] = []
    again = asyncio.Event()

    async def work() -> None:
        done.append("written")
        if len(done) == 1:
            drain.stir()
        else:
            again.set()

    drain = Drain(work, Chores(), "test")
    drain.stir()
    async with asyncio.timeout(20):
        await again.wait()
    assert done == ["written", "written"]
