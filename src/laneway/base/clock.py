"""The clock port's implementation on the event loop; tests pass a clock of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class LoopClock:
    """The running event loop's clock."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_later(seconds, callback).cancel
