"""Calls a plugin's methods so that nothing it does reaches further: `exit()`, a `stop` that hangs.

Used by `laneway.lanes.adapter`, which decides when.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from laneway.core.ports import Clock
from laneway.lanes.protocol import LanePlugin
from laneway.lanes.words import words_of

STOP_S = 5.0
"""For a plugin to stop."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class PluginExited(Exception):
    """It called `exit()`, which would have ended the whole program."""

    def __init__(self, code: object) -> None:
        super().__init__(f"it called exit({'' if code is None else code})")


async def called(call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await call()
    except SystemExit as error:
        raise PluginExited(error.code) from error


async def stop(name: str, plugin: LanePlugin, clock: Clock) -> None:
    """Stop it, within `STOP_S`; whatever goes wrong is logged."""
    stopping = asyncio.ensure_future(called(plugin.stop))
    if not await ends_within(stopping, STOP_S, clock):
        stopping.cancel()
        _log.warning("lane %s did not stop within %g s", name, STOP_S)
    elif not stopping.cancelled() and (error := stopping.exception()) is not None:
        _log.warning("lane %s could not be stopped: %s", name, words_of(error))


async def ends_within(task: asyncio.Future[T], seconds: float, clock: Clock) -> bool:
    """Wait for a task, not longer than this. It goes on if it takes longer."""
    time_up = asyncio.Event()
    waiting = asyncio.ensure_future(time_up.wait())
    cancel = clock.after(seconds, time_up.set)
    try:
        both: list[asyncio.Future[Any]] = [task, waiting]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        cancel()
        waiting.cancel()
    return task.done()
