"""Serves MCP over Streamable HTTP, so that one hub serves several clients: the socket and the shutdown.

HTTP itself is uvicorn's (`laneway.doors.http.serving`).

Why not the transport of the `mcp` SDK: for the stateless era it cannot be used without that SDK's
own server; for the eras before it can, but it turns every message into a typed model (ids and
unknown fields included), and one client that does not read stops all streams of its session. What
we write instead, the sessions and the header checks, is small (`http_app`, `http_guard`), and its
tests drive it with that very SDK's client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from laneway.base.clock import LoopClock
from laneway.core.ports import Clock
from laneway.doors.gate import Gate, host_names
from laneway.doors.http.exchange import App
from laneway.doors.http.serving import MAX_CONNECTIONS, MAX_UNPROVEN, http_library, limits_of, served
from laneway.doors.listening import bind
from laneway.doors.mcp.http_app import PATH, HttpApp
from laneway.doors.mcp.http_sessions import HttpTiming
from laneway.doors.mcp.server import McpServer


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
    library = http_library("http")
    listening = bind(host, port, remote_flag="--http-remote", may_leave_machine=may_leave_machine)
    with listening:
        address, bound = listening.getsockname()[:2]
        names = host_names(host, bound, hosts) | host_names(address, bound)
        clock = clock or LoopClock()
        app = HttpApp(server, Gate(tokens, names, origins), clock, timing)
        limits = limits_of(clock, "MCP over HTTP", max_connections=max_connections, max_unproven=max_unproven)
        async with served(library, wrap(app), listening, limits, clock, body_s=timing.body_s):
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
