"""Lets the user's other terminals reach the sessions of a server: `laneway sessions watch` and `stop`."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from laneway.base.clock import LoopClock
from laneway.base.errors import StoreError
from laneway.core.colleagues import Colleagues
from laneway.doors.local.door import Door
from laneway.doors.local.guests import Guests

log = logging.getLogger(__name__)


@asynccontextmanager
async def local_door(
    colleagues: Colleagues,
    environment: Mapping[str, str] | None = None,
    guests: Guests | None = None,
) -> AsyncIterator[Door | None]:
    """Open while the block runs. A server works without it, too: then the log says why it has none."""
    async with AsyncExitStack() as stack:
        try:
            door = await stack.enter_async_context(
                Door(colleagues, LoopClock(), environment=environment, guests=guests)
            )
        except StoreError as problem:
            log.warning("`laneway sessions watch` and `stop` cannot reach this process: %s", problem)
            door = None
        yield door
