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

HTTP_PORT = 80
ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
"""Addresses that mean all of them, which no browser has to open, and what is printed instead."""


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
        shown, names = _names(address, bound, host, tuple(hosts))
        clock = clock or LoopClock()
        feed = feed or EventFeed()
        gate = Gate([token], names, origins=own_origins(names, bound))
        app = PageApp(parts, feed, gate, own_origins(names, bound), ping_s=ping_s)
        limits = limits_of(clock, "The page", max_connections=max_connections)
        async with AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part.running(feed.of(part.name)))
            async with served(library, app, listening, limits, clock, body_s=BODY_S):
                # After the # it is sent to no server, and stands in no log.
                on_ready(f"http://{shown}:{bound}/#token={quote(token, safe='')}")
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    feed.end()


def _names(address: str, port: int, host: str, further: tuple[str, ...]) -> tuple[str, frozenset[str]]:
    """The name to print, and what is ours in `Host`."""
    names = host_names(host, port, further) | host_names(address, port)
    # A proxy with TLS in front of us is called by its name alone.
    names |= {name.lower() for name in further}
    if address in ALL_ADDRESSES:
        loopback = ALL_ADDRESSES[address]
        return (further or (loopback,))[0], names | host_names(loopback.strip("[]"), port)
    return f"[{address}]" if ":" in address else address, names


def own_origins(hosts: Iterable[str], port: int) -> frozenset[str]:
    """With TLS, a proxy is in front of us. Without it, a name alone is that of another server, on port 80."""
    return frozenset(
        f"{scheme}://{host}"
        for host in hosts
        for scheme in ("http", "https")
        if scheme == "https" or host.endswith(f":{port}") or port == HTTP_PORT
    )
