"""One connection at the door: bytes in, answers out, at the pace at which its other end reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from laneway.doors.local.admission import may_enter, uid_of
from laneway.doors.local.counter import Counter
from laneway.doors.local.guests import OPEN, Guests, Serve, key_of
from laneway.wire.peer import Peer, Raw

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 8 * 1024 * 1024
"""A guest's call may bring a message of 1 MiB, every character of it spelt as an escape."""


class Visitor(asyncio.Protocol):
    """Made by `Door` for each connection. `ours` is the user who may come in."""

    def __init__(
        self, counter: Counter, ours: int, admit: Callable[[Visitor], bool], guests: Guests | None = None
    ) -> None:
        self.gone = asyncio.Event()
        self.guest: Serve | None = None
        """Set once it has shown the key of a session."""
        self._guests = guests
        self._counter = counter
        self._ours = ours
        self._admit = admit
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._peer: Peer | None = None
        self._transport: asyncio.Transport

    # ── asyncio's side ─────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        uid = uid_of(transport.get_extra_info("socket"))
        if not may_enter(uid, self._ours):
            log.warning("user %s was turned away at the local door", uid)
            self._transport.abort()
        elif not self._admit(self):
            log.warning("one visitor too many at the local door")
            self._transport.abort()
        else:
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
        if self._peer is not None:
            self._peer.feed_eof()
        self.gone.set()

    # ── the counter's side (`Line`) ────────────────────────────────────────

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        if self.guest is not None:
            return await self.guest(method, params, request_id)
        return await self._counter.serve(self, method, params)

    def _hear(self, method: str, params: Raw, frame: bytes) -> None:
        if method != OPEN or self.guest is not None:
            return  # nobody else has anything to tell us
        assert self._peer is not None
        key = key_of(params)
        self.guest = self._guests(key, self._peer) if self._guests is not None and key else None
        if self.guest is None or not self._admit(self):
            log.warning("a guest of the local door was turned away")
            self._transport.abort()

    def tell(self, method: str, params: Any) -> None:
        assert self._peer is not None
        # Whoever tells waits for room: nothing piles up here that would have to be dropped.
        self._peer.notify(method, params, may_drop=False)

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
