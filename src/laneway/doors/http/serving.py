"""Serves an ASGI application on a listening socket, with bounds on connections and on slow requests.

HTTP itself is uvicorn's, imported only here and only when it is used.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from laneway.base.errors import UsageError
from laneway.core.ports import Clock
from laneway.doors.connection_limits import ConnectionLimits
from laneway.doors.http.exchange import App

if TYPE_CHECKING:
    import uvicorn

MAX_CONNECTIONS = 512
"""Authenticated connections at once; a further one is told to retry. A busy client has two or three."""
MAX_UNPROVEN = 256
"""Connections not authenticated yet; one more replaces the oldest. All together stay below 1024 files."""
BACKLOG = MAX_UNPROVEN // 2
"""Connections accepted in one go: fewer than `MAX_UNPROVEN`, so that each has a chance to send its token."""
UNPROVEN_S = 10
"""For a new connection to send the token, in the headers of its first request."""
HEAD_S = 10
"""For the headers of a later request, from their first byte."""
LATE_BODY_S = 5
"""For a late body to end, after its request was answered with a timeout."""
KEEP_ALIVE_S = 15
"""For a client's next request on the same connection."""
FLUSH_S = 2
"""For the last answers to reach clients that still read."""


def http_library(extra: str) -> Any:
    """uvicorn; `extra` is the one of our package that brings it."""
    try:
        import uvicorn
    except ImportError as problem:
        from laneway.base.installed import installed_how

        raise UsageError(
            f"Serving over HTTP needs one more package: install it with `{installed_how().adding(extra)}`."
        ) from problem
    return uvicorn


def limits_of(
    clock: Clock, server: str, *, max_connections: int = MAX_CONNECTIONS, max_unproven: int = MAX_UNPROVEN
) -> ConnectionLimits:
    return ConnectionLimits(
        clock, server=server, max_unproven=max_unproven, max_proven=max_connections, unproven_s=UNPROVEN_S
    )


@asynccontextmanager
async def served(
    library: Any, app: App, listening: socket.socket, limits: ConnectionLimits, clock: Clock, *, body_s: float
) -> AsyncIterator[None]:
    """Serve for as long as the block runs; then the last answers are sent, and clients disconnected."""
    web = _web(library, app, limits, clock, body_s)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(web.serve([listening]))
        try:
            yield
        finally:
            limits.refuse_unproven()
            web.should_exit = True
            await asyncio.wait({serving}, timeout=FLUSH_S)
            for connection in list(web.server_state.connections):
                connection.transport.abort()  # of clients that did not take their last answers


def _web(library: Any, app: App, limits: ConnectionLimits, clock: Clock, body_s: float) -> uvicorn.Server:
    from laneway.doors.http.connection import Deadlines, HttpConnection

    deadlines = Deadlines(head_s=HEAD_S, body_s=body_s + LATE_BODY_S)
    config = library.Config(
        app,
        http=partial(HttpConnection, limits, clock, deadlines),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        # Otherwise uvicorn believes any X-Forwarded-For header.
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        # By then we have aborted the connections that did not end by themselves.
        timeout_graceful_shutdown=2 * FLUSH_S,
    )

    class Web(library.Server):  # type: ignore[misc]
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Signals are handled by our caller."""
            yield

    return Web(config)
