"""One connection at the door: bytes in, answers out, at the pace at which its other end reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from laneway.doors.local.admission import may_enter, uid_of
from laneway.doors.local.counter import Counter
from laneway.wire.peer import Peer, Raw

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 64 * 1024
"""One request names one session."""


class Visitor(asyncio.Protocol):
    """Made by `Door` for each connection. `ours` is the user who may come in."""

    def __init__(self, counter: Counter, ours: int, admit: Callable[[Visitor], bool]) -> None:
        self.gone = asyncio.Event()
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
                on_notification=_ignore,
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
        return await self._counter.serve(self, method, params)

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


def _ignore(method: str, params: Raw, frame: bytes) -> None:
    pass  # nobody has anything to tell us
