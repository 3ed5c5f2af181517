"""One connection of the local server: requests in, answers out, at the pace at which its client reads.

Its origin is determined when it is made, and decides what it may request (`origin`). While none of its
requests is being served it is idle, and may be dropped to make room for others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from laneway.base.errors import RemoteError
from laneway.doors.connection_limits import Arrival, ConnectionLimits
from laneway.doors.local.admission import may_enter, pid_of, uid_of
from laneway.doors.local.api import LocalApi
from laneway.doors.local.bridge_keys import OPEN, Serve, key_of
from laneway.doors.local.origin import UNKNOWN, Origin, of_process, origin_of
from laneway.doors.local.person import is_person
from laneway.doors.local.shapes import FROM_AGENT, TOO_MANY
from laneway.wire import process_tree
from laneway.wire.peer import Peer, Raw

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 8 * 1024 * 1024
"""A call through a bridge may carry a message of 1 MiB, every character of it written as an escape."""

AdmitBridge: TypeAlias = Callable[[str, "LocalConnection", Peer], Serve | None]
"""From the key that a connection sent to the function that serves it from then on; none if it is refused."""


class LocalConnection(asyncio.Protocol):
    """Made by `LocalServer` for each connection. `ours` is the user who may connect."""

    def __init__(
        self,
        api: LocalApi,
        ours: int,
        limits: ConnectionLimits,
        on_connected: Callable[[LocalConnection], None],
        on_disconnected: Callable[[LocalConnection], None],
        admit_bridge: AdmitBridge,
    ) -> None:
        self.gone = asyncio.Event()
        self.bridge: Serve | None = None
        """Serves its requests, once it has sent the key of a session."""
        self._api = api
        self._ours = ours
        self._limits = limits
        self._on_connected = on_connected
        self._on_disconnected = on_disconnected
        self._admit_bridge = admit_bridge
        self._arrival: Arrival | None = None
        self._served = 0
        """Requests that are being answered now."""
        self._is_drained = asyncio.Event()
        self._is_drained.set()
        self._opening: asyncio.Task[None] | None = None
        self._origin: asyncio.Future[Origin]
        self._peer: Peer | None = None
        self._transport: asyncio.Transport

    # ── asyncio's side ─────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._on_connected(self)
        sock = transport.get_extra_info("socket")
        uid = uid_of(sock)
        if not may_enter(uid, self._ours):
            log.warning("user %s may not connect to the local socket", uid)
            self._transport.abort()
            return
        self._origin = _find_origin(sock)
        self._peer = Peer(
            self._transport.write,
            on_request=self._serve,
            on_notification=self._receive_notification,
            backlog_bytes=self._transport.get_write_buffer_size,
            pause_reading=self._transport.pause_reading,
            resume_reading=self._transport.resume_reading,
            with_batches=False,
            max_bytes=MAX_REQUEST_BYTES,
        )
        self._arrival = self._limits.arrive(self._transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._peer is not None:
            self._peer.feed(data)

    def pause_writing(self) -> None:
        self._is_drained.clear()

    def resume_writing(self) -> None:
        self._is_drained.set()
        if self._peer is not None:
            self._peer.drained()

    def connection_lost(self, error: Exception | None) -> None:
        if self._arrival is not None:
            self._arrival.leave()
        if self._peer is not None:
            self._peer.feed_eof()
        self.gone.set()
        self._on_disconnected(self)

    # ── requests, and the side of `LocalApi` (`WatcherChannel`) ────────────

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        if self._opening is not None:
            await asyncio.shield(self._opening)
        if self.bridge is not None:
            return await self.bridge(method, params, request_id)
        origin = await asyncio.shield(self._origin)
        if not origin.may_ask:
            log.warning("a request on the local socket was refused: %s", origin.refusal)
            raise RemoteError(FROM_AGENT, origin.refusal)
        return await self._answer(method, params)

    async def _answer(self, method: str, params: Raw) -> Any:
        assert self._arrival is not None
        if not self._arrival.prove():
            text = (
                f"All connections to process {os.getpid()} are in use: leave one that watches, and try again."
            )
            raise RemoteError(TOO_MANY, text)
        self._served += 1
        try:
            return await self._api.serve(self, method, params)
        finally:
            self._served -= 1
            if not self._served and not self.gone.is_set():
                self._arrival.rest()

    def _receive_notification(self, method: str, params: Raw, frame: bytes) -> None:
        if method == OPEN and self._opening is None:  # no other notification is defined
            self._opening = asyncio.get_running_loop().create_task(self._open_bridge(key_of(params)))

    async def _open_bridge(self, key: str | None) -> None:
        """Make the connection its session's own. Requests that came after the key wait for this."""
        assert self._peer is not None
        origin = await asyncio.shield(self._origin)
        if key and origin.may_bridge and not self.gone.is_set():
            self.bridge = self._admit_bridge(key, self, self._peer)
        if self.bridge is None:
            log.warning("a bridge to the local socket was refused (%s)", origin.kind)
            self._transport.abort()
        elif self._arrival is not None:
            self._arrival.leave()  # idle for as long as its session is

    def tell(self, method: str, params: Any) -> None:
        assert self._peer is not None
        # The sender waits for room (`wait_drained`): nothing piles up here that would have to be dropped.
        self._peer.notify(method, params, may_drop=False)

    async def is_person(self) -> bool:
        pid = pid_of(self._transport.get_extra_info("socket"))
        return await asyncio.to_thread(is_person, pid)

    async def wait_drained(self) -> None:
        await asyncio.sleep(0)  # what was sent in this turn of the loop is written at its end
        await self._is_drained.wait()

    # ── the end ────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """Answer open requests and wait until the answers are read. The caller sets the time limit."""
        if self._peer is not None:
            await self._peer.aclose()
        self._transport.close()
        await self.gone.wait()

    def abort(self) -> None:
        self._transport.abort()


def _find_origin(sock: socket.socket) -> asyncio.Future[Origin]:
    """The origin of a connection: known at once on systems where reading the process tree is quick."""
    loop = asyncio.get_running_loop()
    if not process_tree.IS_QUICK:
        pid = pid_of(sock)
        if pid is not None:
            return asyncio.ensure_future(asyncio.to_thread(of_process, pid))
    origin: asyncio.Future[Origin] = loop.create_future()
    origin.set_result(origin_of(sock) if process_tree.IS_QUICK else UNKNOWN)
    return origin
