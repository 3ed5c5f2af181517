"""MCP on standard input and output: the pipe, the signals, and the end.

Greets first: what `Front` knows is answered while the rest is still being opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from laneway.base.errors import LanewayError
from laneway.doors.ending import EndSignals
from laneway.doors.keeper import Keeper
from laneway.doors.mcp.codes import wire_error
from laneway.doors.mcp.eras import STRANGER, WITH_BATCHES
from laneway.doors.mcp.front import Front
from laneway.doors.pipe import Pipe, claim_standard_streams
from laneway.wire.peer import Peer, Raw

if TYPE_CHECKING:
    from laneway.doors.mcp.server import Connection, Server

PRINCIPAL = "stdio"
"""Whoever holds the other end of the pipe started us."""
QUICK_S = 0.2
"""For requests that need no Codex to be answered after the client hung up."""
GREETING_TURNS = 3
"""Of the event loop: in these a greeting that waits for us already is read, served and answered."""


class Behind(msgspec.Struct, frozen=True):
    """What stands behind the front."""

    server: Server
    shutdown: Callable[[], Awaitable[None]]
    """Ends the sessions, when the client has gone."""


OpenHouse: TypeAlias = Callable[[], AbstractAsyncContextManager[Behind]]


class Counter:
    """MCP's side of the pipe."""

    def __init__(self, front: Front, open_house: OpenHouse) -> None:
        self._front = front
        self.pipe = Pipe(
            on_request=self._serve, on_notification=self._hear, cancel_notice=_cancelled, with_lengths=True
        )
        self.keeper = Keeper(open_house)
        self._client = STRANGER
        self._connection: Connection | None = None

    async def open(self) -> None:
        await self.pipe.open(*claim_standard_streams())
        behind = self.keeper.house_now
        if behind is not None and behind.server.beyond is not None:
            behind.server.beyond.connect_client(_Upstream(self.pipe.peer))
        await self.pipe.listen()

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        if method == "initialize":
            self._client, answer = self._front.greet(params)
            self.pipe.peer.with_batches = self._client.version in WITH_BATCHES
            return answer
        if self._front.answers(method):
            return self._front.answer(method, params, self._client)
        try:
            behind = await self.keeper.house()
        except LanewayError as error:
            raise wire_error(error) from error
        return await behind.server.serve(self._connected(), method, params, request_id)

    def _connected(self) -> Connection:
        """The client as whoever stands behind us knows it."""
        if self._connection is None:
            from laneway.doors.mcp.server import Connection  # loaded with the house, not before the greeting

            self._connection = Connection(PRINCIPAL, self.pipe.peer)
        self._connection.client = self._client
        return self._connection

    def _hear(self, method: str, params: Raw, frame: bytes) -> None:
        if method == "notifications/cancelled" and params:
            request_id = msgspec.json.decode(params, type=_Cancelled).requestId
            if request_id:
                self.pipe.peer.cancel_theirs(bytes(request_id))
        elif self.keeper.house_now is not None:
            self.keeper.house_now.server.hear(method, params)


class _Upstream:
    """The client, for a server behind us that wants to say something of its own."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def request(self, method: str, params: Raw) -> Raw:
        return await self._peer.call(method, params, reply=Raw)

    def notify(self, method: str, params: Raw) -> None:
        self._peer.notify(method, params)


class _Cancelled(msgspec.Struct):
    requestId: msgspec.Raw = msgspec.Raw()


def _cancelled(request_id: bytes) -> tuple[str, Any]:
    return "notifications/cancelled", {"requestId": msgspec.Raw(request_id), "reason": "no longer needed"}


async def serve_stdio(front: Front, open_house: OpenHouse, *, opens_first: bool = False) -> None:
    """Serve until the client hangs up or a signal comes; then shut down, and at a second signal leave.

    `opens_first`: nobody is greeted before all is open. Where it cannot be opened, we end and raise why.
    """
    counter = Counter(front, open_house)
    pipe = counter.pipe
    async with aclosing(counter.keeper) as keeper:
        if opens_first:
            await keeper.house()
        await counter.open()
        with EndSignals(pipe.ended):
            for _ in range(GREETING_TURNS):
                await asyncio.sleep(0)
            try:
                try:
                    behind = await keeper.house()
                    await pipe.ended.wait()
                    behind.server.end_news()
                finally:
                    # Whoever writes its requests and closes its end still wants what can be had at once.
                    await pipe.peer.wait_served(QUICK_S)
                await behind.shutdown()
            finally:
                await pipe.aclose()
