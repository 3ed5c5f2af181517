"""An engine that the lanes of all conversations share: opened for the first, ended after the last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from laneway.base.errors import EngineClosed, LanewayError
from laneway.core.hub import Hub
from laneway.core.offers import Offers
from laneway.doors.chat.engine_words import sentence


class SharedEngine:
    """The `LaneEngine` of the lanes of one kind."""

    def __init__(
        self,
        open_hub: Callable[[], AbstractAsyncContextManager[Hub]],
        offers: Callable[[], Offers],
        check: Callable[[SharedEngine], Awaitable[str | None]],
    ) -> None:
        """`check` says why the engine cannot be used, or raises that; it may acquire the engine."""
        self._open_hub = open_hub
        self._offers = offers
        self._check = check
        self._known_offers: Offers | None = None
        self._is_checked = False
        self._lock = asyncio.Lock()
        self._hub_task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._hub: Hub | None = None
        self._is_over = False
        self.holders = 0

    @property
    def offers(self) -> Offers:
        if self._known_offers is None:
            self._known_offers = self._offers()
        return self._known_offers

    async def problem(self) -> str | None:
        if self._is_checked:
            return None  # once usable, it is its turns that tell what is wrong
        try:
            problem = await self._check(self)
        except LanewayError as error:
            return sentence(str(error))
        self._is_checked = problem is None
        return problem

    async def acquire(self) -> Hub:
        async with self._lock:
            if self._is_over:
                raise EngineClosed
            hub = self._hub or await self._open()
            self.holders += 1
            return hub

    async def release(self) -> None:
        async with self._lock:
            self.holders -= 1
            if self.holders == 0:
                await self._close()

    async def aclose(self) -> None:
        """End the engine, whoever still holds it."""
        async with self._lock:
            self._is_over = True
            await self._close()

    async def _open(self) -> Hub:
        opened: asyncio.Future[Hub] = asyncio.get_running_loop().create_future()
        self._leave.clear()
        hub_task = self._hub_task = asyncio.create_task(self._hold_open(opened), name="an engine of lanes")
        try:
            await asyncio.wait((hub_task, opened), return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await self._close()
            raise
        if hub_task.done():
            self._hub_task = None
            await hub_task  # raises why
        self._hub = opened.result()
        return self._hub

    async def _hold_open(self, opened: asyncio.Future[Hub]) -> None:
        """A task of its own: whatever is opened is closed where it was opened."""
        async with self._open_hub() as hub:
            opened.set_result(hub)
            await self._leave.wait()

    async def _close(self) -> None:
        hub_task, self._hub_task, self._hub = self._hub_task, None, None
        self._leave.set()
        if hub_task is not None:
            await asyncio.wait((hub_task,))
