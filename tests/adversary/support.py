"""What the attacks share: waiting for an effect that only files or a log show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LOOK_S = 0.02
"""Between two looks at what another process writes and nobody tells us."""
DEADLINE_S = 60.0
"""For what takes a second; the machine may be busy."""


async def settled(is_so: Callable[[], object]) -> None:
    """Until it is so; an error after a generous deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():
            await asyncio.sleep(LOOK_S)
