"""Opens the local socket of a server, for `laneway sessions watch` and `stop`, and for the console."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from laneway.base.clock import LoopClock
from laneway.base.errors import StoreError
from laneway.core.hub import Hub
from laneway.doors.local.bridge_keys import OpenBridge
from laneway.doors.local.live import HubSessions, LocalSessions
from laneway.doors.local.server import LocalServer

log = logging.getLogger(__name__)


@asynccontextmanager
async def local_socket(
    sessions: LocalSessions,
    environment: Mapping[str, str] | None = None,
    open_bridge: OpenBridge | None = None,
    *,
    door: str = "",
) -> AsyncIterator[LocalServer | None]:
    """Open the socket while the block runs; if that fails, the log says why. `door` is the command's name."""
    async with AsyncExitStack() as stack:
        try:
            server = await stack.enter_async_context(
                LocalServer(
                    sessions, LoopClock(), door=door, environment=environment, open_bridge=open_bridge
                )
            )
        except StoreError as problem:
            log.warning("`laneway sessions watch` and `stop` cannot reach this process: %s", problem)
            server = None
        yield server


def socket_of(hub: Hub, door: str) -> AbstractAsyncContextManager[LocalServer | None]:
    """The same for a hub whose sessions have no names."""
    return local_socket(HubSessions(hub), door=door)
