"""Serves the page: the listening socket, its address with the token, and the life of the parts.

HTTP itself is uvicorn's (`laneway.doors.http.serving`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from urllib.parse import quote

from laneway.base.clock import LoopClock
from laneway.core.ports import Clock
from laneway.doors.console.event_feed import EventFeed
from laneway.doors.console.page_app import PING_S, PageApp
from laneway.doors.gate import Gate, host_names
from laneway.doors.http.serving import MAX_CONNECTIONS, http_library, limits_of, served
from laneway.doors.listening import bind
from laneway.doors.page_parts import BODY_S, Announce, PagePart


async def serve_page(
    parts: Sequence[PagePart],
    *,
    token: str,
    on_ready: Announce,
    host: str = "127.0.0.1",
    port: int = 0,
    may_leave_machine: bool = False,
    hosts: Iterable[str] = (),
    feed: EventFeed | None = None,
    clock: Clock | None = None,
    ping_s: float = PING_S,
    max_connections: int = MAX_CONNECTIONS,
) -> None:
    """Serve until cancelled. `hosts` are further names of this server, as browsers send them."""
    library = http_library("web")
    listening = bind(host, port, remote_flag="the setting page.remote", may_leave_machine=may_leave_machine)
    with listening:
        address, bound = listening.getsockname()[:2]
        names = host_names(host, bound, hosts) | host_names(address, bound)
        clock = clock or LoopClock()
        feed = feed or EventFeed()
        gate = Gate([token], names, origins=own_origins(names))
        app = PageApp(parts, feed, gate, own_origins(names), ping_s=ping_s)
        limits = limits_of(clock, "The page", max_connections=max_connections)
        async with AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part.running(feed.of(part.name)))
            async with served(library, app, listening, limits, clock, body_s=BODY_S):
                host_in_url = f"[{address}]" if ":" in address else address
                # After the # it is sent to no server, and stands in no log.
                on_ready(f"http://{host_in_url}:{bound}/#token={quote(token, safe='')}")
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    feed.end()


def own_origins(hosts: Iterable[str]) -> frozenset[str]:
    """A further name may be that of a proxy with TLS in front of us."""
    return frozenset(f"{scheme}://{host}" for host in hosts for scheme in ("http", "https"))
