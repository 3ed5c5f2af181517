"""What a door opens onto, opened behind the greeting: a client has its first answer before it is there.

One task opens it, keeps it and closes it; requests wait for it in the order in which they came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from laneway.base.errors import LanewayError, SessionClosed

T = TypeVar("T")


class Keeper(Generic[T]):
    """`begin`, or the first `house`, opens it; `aclose` closes it for good. Made inside a running loop."""

    def __init__(self, open_house: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._open_house = open_house
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._in_order = asyncio.Lock()
        self._keeping: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._keeping is None and not self._closing.is_set():
            self._keeping = asyncio.ensure_future(self._keep())

    @property
    def house_now(self) -> T | None:
        """What is open; none while it is not."""
        is_open = self._opened.done() and not self._opened.cancelled() and not self._opened.exception()
        return self._opened.result() if is_open else None

    async def house(self) -> T:
        """What is open, now or soon; raises what keeps it from opening."""
        self.begin()
        if self._keeping is None:
            raise SessionClosed("Laneway is shutting down")
        # What was sent first must be begun first, also where it has waited and the next need not any more.
        async with self._in_order:
            return await asyncio.shield(self._opened)

    async def _keep(self) -> None:
        try:
            async with self._open_house() as house:
                self._opened.set_result(house)
                await self._closing.wait()
        except LanewayError as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)
            self._opened.exception()  # `aclose` raises it, where nobody asked for the house
        finally:
            self._opened.cancel()  # nobody waits for ever for what a bug kept from opening

    async def aclose(self) -> None:
        """Close it, if it was begun. Raises what kept it from opening."""
        self._closing.set()
        if self._keeping is None:
            return
        await self._keeping
        self._opened.result()
