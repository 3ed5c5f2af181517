"""One connection at the door: bytes in, answers out, at the pace at which its other end reads.

Where it comes from is looked at when it is made, and decides what it may ask (`origin`). While nothing
of it is served it is idle, and may have to make room for others.
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
from laneway.doors.local.counter import Counter
from laneway.doors.local.guests import OPEN, Serve, key_of
from laneway.doors.local.origin import UNKNOWN, Origin, of_process, origin_of
from laneway.doors.local.person import is_person
from laneway.doors.local.shapes import FROM_AGENT, TOO_MANY
from laneway.wire import process_tree
from laneway.wire.peer import Peer, Raw

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 8 * 1024 * 1024
"""A guest's call may bring a message of 1 MiB, every character of it spelt as an escape."""

Welcome: TypeAlias = Callable[[str, "Visitor", Peer], Serve | None]
"""From the key that a visitor shows to who serves it from then on; none if it is not let in."""


class Visitor(asyncio.Protocol):
    """Made by `Door` for each connection, and told to it. `ours` is the user who may come in."""

    def __init__(
        self,
        counter: Counter,
        ours: int,
        limits: ConnectionLimits,
        on_made: Callable[[Visitor], None],
        on_gone: Callable[[Visitor], None],
        welcome: Welcome,
    ) -> None:
        self.gone = asyncio.Event()
        self.guest: Serve | None = None
        """Set once it has shown the key of a session."""
        self._counter = counter
        self._ours = ours
        self._limits = limits
        self._on_made = on_made
        self._on_gone = on_gone
        self._welcome = welcome
        self._arrival: Arrival | None = None
        self._served = 0
        """Requests that are being answered now."""
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._opening: asyncio.Task[None] | None = None
        self._origin: asyncio.Future[Origin]
        self._peer: Peer | None = None
        self._transport: asyncio.Transport

    # ── asyncio's side ─────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._on_made(self)
        sock = transport.get_extra_info("socket")
        uid = uid_of(sock)
        if not may_enter(uid, self._ours):
            log.warning("user %s was turned away at the local door", uid)
            self._transport.abort()
            return
        self._origin = _looked_at(sock)
        self._peer = Peer(
            self._transport.write,
            on_request=self._serve,
            on_notification=self._hear,
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
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._has_room.set()
        if self._peer is not None:
            self._peer.drained()

    def connection_lost(self, error: Exception | None) -> None:
        if self._arrival is not None:
            self._arrival.leave()
        if self._peer is not None:
            self._peer.feed_eof()
        self.gone.set()
        self._on_gone(self)

    # ── the counter's side (`Line`) ────────────────────────────────────────

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        if self._opening is not None:
            await asyncio.shield(self._opening)
        if self.guest is not None:
            return await self.guest(method, params, request_id)
        origin = await asyncio.shield(self._origin)
        if not origin.may_ask:
            log.warning("a request at the local door was refused: %s", origin.refusal)
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
            return await self._counter.serve(self, method, params)
        finally:
            self._served -= 1
            if not self._served and not self.gone.is_set():
                self._arrival.rest()

    def _hear(self, method: str, params: Raw, frame: bytes) -> None:
        if method == OPEN and self._opening is None:  # nobody else has anything to tell us
            self._opening = asyncio.get_running_loop().create_task(self._open_bridge(key_of(params)))

    async def _open_bridge(self, key: str | None) -> None:
        """From here on it is a session's own. Requests that came behind the key wait for this."""
        assert self._peer is not None
        origin = await asyncio.shield(self._origin)
        if key and origin.may_bridge and not self.gone.is_set():
            self.guest = self._welcome(key, self, self._peer)
        if self.guest is None:
            log.warning("a guest of the local door was turned away (%s)", origin.kind)
            self._transport.abort()
        elif self._arrival is not None:
            self._arrival.leave()  # idle for as long as its session is

    def tell(self, method: str, params: Any) -> None:
        assert self._peer is not None
        # Whoever tells waits for room: nothing piles up here that would have to be dropped.
        self._peer.notify(method, params, may_drop=False)

    async def is_person(self) -> bool:
        pid = pid_of(self._transport.get_extra_info("socket"))
        return await asyncio.to_thread(is_person, pid)

    async def wait_room(self) -> None:
        await asyncio.sleep(0)  # what was told in this turn of the loop is written at its end
        await self._has_room.wait()

    # ── the end ────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """Answer what is open and wait until it is taken. The caller's patience is the bound."""
        if self._peer is not None:
            await self._peer.aclose()
        self._transport.close()
        await self.gone.wait()

    def abort(self) -> None:
        self._transport.abort()


def _looked_at(sock: socket.socket) -> asyncio.Future[Origin]:
    """Where a connection comes from: known at once where the system tells it at once."""
    loop = asyncio.get_running_loop()
    if not process_tree.IS_QUICK:
        pid = pid_of(sock)
        if pid is not None:
            return asyncio.ensure_future(asyncio.to_thread(of_process, pid))
    origin: asyncio.Future[Origin] = loop.create_future()
    origin.set_result(origin_of(sock) if process_tree.IS_QUICK else UNKNOWN)
    return origin
