"""Opens the local socket of a server, for `laneway sessions watch` and `stop` in other terminals."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from laneway.base.clock import LoopClock
from laneway.base.errors import StoreError
from laneway.core.named.sessions import NamedSessions
from laneway.doors.local.bridge_keys import OpenBridge
from laneway.doors.local.server import LocalServer

log = logging.getLogger(__name__)


@asynccontextmanager
async def local_socket(
    sessions: NamedSessions,
    environment: Mapping[str, str] | None = None,
    open_bridge: OpenBridge | None = None,
) -> AsyncIterator[LocalServer | None]:
    """Open the socket while the block runs. If that fails, the log says why."""
    async with AsyncExitStack() as stack:
        try:
            server = await stack.enter_async_context(
                LocalServer(sessions, LoopClock(), environment=environment, open_bridge=open_bridge)
            )
        except StoreError as problem:
            log.warning("`laneway sessions watch` and `stop` cannot reach this process: %s", problem)
            server = None
        yield server
