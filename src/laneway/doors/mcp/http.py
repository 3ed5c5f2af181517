"""Serves MCP over Streamable HTTP, so that one hub serves several clients: the socket and the shutdown.

HTTP itself is uvicorn's, imported only here and only when it is used.

Why not the transport of the `mcp` SDK: for the stateless era it cannot be used without that SDK's
own server; for the eras before it can, but it turns every message into a typed model (ids and
unknown fields included), and one client that does not read stops all streams of its session. What
we write instead, the sessions and the header checks, is small (`http_app`, `http_guard`), and its
tests drive it with that very SDK's client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from laneway.base.clock import LoopClock
from laneway.base.errors import UsageError
from laneway.core.ports import Clock
from laneway.doors.connection_limits import ConnectionLimits
from laneway.doors.gate import Gate, host_names
from laneway.doors.listening import bind
from laneway.doors.mcp.http_app import PATH, HttpApp
from laneway.doors.mcp.http_exchange import App
from laneway.doors.mcp.http_sessions import HttpTiming
from laneway.doors.mcp.server import McpServer

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


async def serve_http(
    server: McpServer,
    *,
    host: str,
    port: int,
    tokens: Iterable[str],
    stop: asyncio.Event,
    on_ready: Callable[[str], None],
    shutdown: Callable[[], Awaitable[None]] | None = None,
    may_leave_machine: bool = False,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    clock: Clock | None = None,
    timing: HttpTiming = HttpTiming(),  # noqa: B008  frozen
    max_connections: int = MAX_CONNECTIONS,
    max_unproven: int = MAX_UNPROVEN,
    wrap: Callable[[App], App] = lambda app: app,
) -> None:
    """Serve until `stop`, then call `shutdown` while clients are still connected, then disconnect them.

    `on_ready` is given the URL once clients can connect. `hosts` are further names of this server,
    `origins` web pages that may call it.
    """
    library = _uvicorn()
    listening = bind(host, port, remote_flag="--http-remote", may_leave_machine=may_leave_machine)
    with listening:
        address, bound = listening.getsockname()[:2]
        names = host_names(host, bound, hosts) | host_names(address, bound)
        clock = clock or LoopClock()
        app = HttpApp(server, Gate(tokens, names, origins), clock, timing)
        limits = ConnectionLimits(
            clock,
            server="MCP over HTTP",
            max_unproven=max_unproven,
            max_proven=max_connections,
            unproven_s=UNPROVEN_S,
        )
        web = _web(library, wrap(app), limits, clock, timing)
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(web.serve([listening]))
            host_in_url = f"[{address}]" if ":" in address else address
            on_ready(f"http://{host_in_url}:{bound}{PATH}")
            try:
                await stop.wait()
                app.refuse_new()
                server.end_subscriptions()
                if shutdown is not None:
                    await shutdown()
            finally:
                limits.refuse_unproven()
                await app.aclose()
                web.should_exit = True
                await asyncio.wait({serving}, timeout=FLUSH_S)
                for connection in list(web.server_state.connections):
                    connection.transport.abort()  # of clients that did not take their last answers


def _uvicorn() -> Any:
    try:
        import uvicorn
    except ImportError as problem:
        from laneway.base.installed import installed_how

        raise UsageError(
            f"Serving over HTTP needs one more package: install it with `{installed_how().adding('http')}`."
        ) from problem
    return uvicorn


def _web(
    library: Any, app: App, limits: ConnectionLimits, clock: Clock, timing: HttpTiming
) -> uvicorn.Server:
    from laneway.doors.mcp.http_connection import Deadlines, HttpConnection

    deadlines = Deadlines(head_s=HEAD_S, body_s=timing.body_s + LATE_BODY_S)
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
