"""MCP on standard input and output: the pipe, the signals, and the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from laneway.doors.ending import EndSignals
from laneway.doors.mcp.eras import WITH_BATCHES
from laneway.doors.mcp.server import Connection, Server
from laneway.doors.pipe import Pipe, claim_standard_streams
from laneway.wire.peer import Peer, Raw

PRINCIPAL = "stdio"
"""Whoever holds the other end of the pipe started us."""
QUICK_S = 0.2
"""For requests that need no Codex to be answered after the client hung up."""


class Counter:
    """MCP's side of the pipe."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.pipe = Pipe(
            on_request=self._serve, on_notification=self._hear, cancel_notice=_cancelled, with_lengths=True
        )
        self.connection: Connection

    async def open(self) -> None:
        await self.pipe.open(*claim_standard_streams())
        self.connection = Connection(PRINCIPAL, self.pipe.peer)
        if self._server.beyond is not None:
            self._server.beyond.connect_client(_Upstream(self.pipe.peer))
        await self.pipe.listen()

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        answer = await self._server.serve(self.connection, method, params, request_id)
        if method == "initialize":
            self.pipe.peer.with_batches = self.connection.client.version in WITH_BATCHES
        return answer

    def _hear(self, method: str, params: Raw, frame: bytes) -> None:
        if method == "notifications/cancelled" and params:
            request_id = msgspec.json.decode(params, type=_Cancelled).requestId
            if request_id:
                self.pipe.peer.cancel_theirs(bytes(request_id))
        else:
            self._server.hear(method, params)


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


async def serve_stdio(server: Server, shutdown: Callable[[], Awaitable[None]]) -> None:
    """Serve until the client hangs up or a signal comes; then `shutdown`, and at a second signal leave."""
    counter = Counter(server)
    await counter.open()
    pipe = counter.pipe
    with EndSignals(pipe.ended):
        await pipe.ended.wait()
        server.end_news()
        # Whoever writes its requests and closes its end still wants what can be had at once.
        await pipe.peer.wait_served(QUICK_S)
        try:
            await shutdown()
        finally:
            await pipe.aclose()
