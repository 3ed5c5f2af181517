"""Calls the store of conversations off the event loop: from one thread, in the order of the calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from laneway.base.errors import ConversationUnknown, StoreError
from laneway.core.conversations import ConversationStore

log = logging.getLogger(__name__)
T = TypeVar("T")


class OrderedStore:
    """One for each process. `port` is only used through `call` and `soon`."""

    def __init__(self, port: ConversationStore) -> None:
        self.port = port
        self._thread = ThreadPoolExecutor(1, "laneway-chat-store")

    def call(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Its errors are the caller's."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def soon(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Nobody waits for it: an error is logged."""
        self.call(work, *arguments).add_done_callback(_log_error)

    async def aclose(self) -> None:
        """After all calls so far."""
        await self.call(lambda: None)
        self._thread.shutdown(wait=False)


def _log_error(future: asyncio.Future[Any]) -> None:
    error = None if future.cancelled() else future.exception()
    if isinstance(error, ConversationUnknown):
        log.info("not stored: %s", error)
    elif isinstance(error, StoreError):
        log.error("the conversation could not be stored: %s", error)
    elif error is not None:
        log.error("the conversation could not be stored", exc_info=error)
