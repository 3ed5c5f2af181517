"""A resource that a server opens in the background, so that it can answer its client's handshake first.

One task opens it, keeps it open and closes it; requests wait for it in the order in which they came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from laneway.base.errors import LanewayError, SessionClosed

T = TypeVar("T")


class LazyResource(Generic[T]):
    """Opened by `begin` or the first `wait_open`; `aclose` closes it for good. Made inside a running loop."""

    def __init__(self, open_resource: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._open_resource = open_resource
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._in_order = asyncio.Lock()
        self._holder: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._holder is None and not self._closing.is_set():
            self._holder = asyncio.ensure_future(self._hold_open())

    @property
    def open_now(self) -> T | None:
        """The resource while it is open, else none."""
        is_open = self._opened.done() and not self._opened.cancelled() and not self._opened.exception()
        return self._opened.result() if is_open else None

    async def wait_open(self) -> T:
        """The resource, once it is open; raises the error that kept it from opening."""
        self.begin()
        if self._holder is None:
            raise SessionClosed("Laneway is shutting down")
        # Requests begin in the order they were sent, also when the first had to wait and the next need not.
        async with self._in_order:
            return await asyncio.shield(self._opened)

    async def _hold_open(self) -> None:
        try:
            async with self._open_resource() as resource:
                self._opened.set_result(resource)
                await self._closing.wait()
        except LanewayError as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)
            self._opened.exception()  # `aclose` raises it, if nobody waited for the resource
        finally:
            self._opened.cancel()  # nobody waits for ever if a bug kept it from opening

    async def aclose(self) -> None:
        """Close it, if it was begun. Raises the error that kept it from opening."""
        self._closing.set()
        if self._holder is None:
            return
        await self._holder
        self._opened.result()
