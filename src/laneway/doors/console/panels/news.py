"""Polls for changes while a browser listens, and publishes that there are some."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from laneway.base.errors import LanewayError
from laneway.core.ports import Clock
from laneway.doors.page_parts import PageFeed

log = logging.getLogger(__name__)

CHANGED = "changed"


@asynccontextmanager
async def news_of(
    feed: PageFeed, look: Callable[[], Awaitable[object]], clock: Clock, every_s: float
) -> AsyncIterator[None]:
    """While the block runs, publish `CHANGED` whenever `look` returns another value than before."""

    async def follow() -> None:
        before: object = None
        while True:
            await feed.wait_watched()
            try:
                now = await look()
            except LanewayError as problem:
                now = str(problem)  # the panel asks as well, and is told
            if now != before:
                before = now
                feed.publish(CHANGED, {})
            await pause(clock, every_s)

    following = asyncio.get_running_loop().create_task(follow(), name="look for news of a panel")
    following.add_done_callback(_report)
    try:
        yield
    finally:
        following.cancel()
        await asyncio.wait((following,))


async def pause(clock: Clock, seconds: float) -> None:
    over = asyncio.Event()
    stop_clock = clock.after(seconds, over.set)
    try:
        await over.wait()
    finally:
        stop_clock()


def _report(following: asyncio.Task[None]) -> None:
    error = None if following.cancelled() else following.exception()
    if error is not None:
        log.error("a panel of the console has no news any more", exc_info=error)
