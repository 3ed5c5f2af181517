"""Serves MCP on standard input and output: the pipe, the signals and the shutdown.

What `ServerInfo` knows (the handshake, the list of tools) is answered while the rest is still being opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from laneway.base.errors import LanewayError
from laneway.doors.ending import EndSignals
from laneway.doors.lazy_resource import LazyResource
from laneway.doors.mcp.codes import wire_error
from laneway.doors.mcp.eras import UNKNOWN_CLIENT, WITH_BATCHES
from laneway.doors.mcp.server_info import ServerInfo
from laneway.doors.pipe import Pipe, claim_standard_streams
from laneway.wire.peer import Peer, Raw

if TYPE_CHECKING:
    from laneway.doors.mcp.server import Connection, McpServer

PRINCIPAL = "stdio"
"""The one client: the process that started us and holds the other end of the pipe."""
QUICK_S = 0.2
"""For requests that need no Codex to be answered after the client hung up."""
GREETING_TURNS = 3
"""Turns of the event loop in which a handshake that waits already is read, served and answered."""


class OpenServer(msgspec.Struct, frozen=True):
    """The server with its sessions, once they are open."""

    server: McpServer
    shutdown: Callable[[], Awaitable[None]]
    """Ends the sessions, when the client has gone."""


OpenServerFn: TypeAlias = Callable[[], AbstractAsyncContextManager[OpenServer]]


class StdioServer:
    """The MCP server of one client on standard input and output."""

    def __init__(self, server_info: ServerInfo, open_server: OpenServerFn) -> None:
        self._server_info = server_info
        self.pipe = Pipe(
            on_request=self._serve,
            on_notification=self._receive_notification,
            cancel_notice=_cancelled,
            with_lengths=True,
        )
        self.lazy = LazyResource(open_server)
        self._client = UNKNOWN_CLIENT
        self._connection: Connection | None = None

    async def open(self) -> None:
        await self.pipe.open(*claim_standard_streams())
        opened = self.lazy.open_now
        if opened is not None and opened.server.fallback is not None:
            opened.server.fallback.connect_client(_Upstream(self.pipe.peer))
        await self.pipe.listen()

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        if method == "initialize":
            self._client, answer = self._server_info.greet(params)
            self.pipe.peer.with_batches = self._client.version in WITH_BATCHES
            return answer
        if self._server_info.answers(method):
            return self._server_info.answer(method, params, self._client)
        try:
            opened = await self.lazy.wait_open()
        except LanewayError as error:
            raise wire_error(error) from error
        return await opened.server.serve(self._connected(), method, params, request_id)

    def _connected(self) -> Connection:
        """The client, as `McpServer` knows it."""
        if self._connection is None:
            # Loaded with the server, not before the handshake.
            from laneway.doors.mcp.server import Connection

            self._connection = Connection(PRINCIPAL, self.pipe.peer)
        self._connection.client = self._client
        return self._connection

    def _receive_notification(self, method: str, params: Raw, frame: bytes) -> None:
        if method == "notifications/cancelled" and params:
            request_id = msgspec.json.decode(params, type=_Cancelled).requestId
            if request_id:
                self.pipe.peer.cancel_theirs(bytes(request_id))
        elif self.lazy.open_now is not None:
            self.lazy.open_now.server.receive_notification(method, params)


class _Upstream:
    """The client, for a server behind us that sends messages of its own."""

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


async def serve_stdio(
    server_info: ServerInfo, open_server: OpenServerFn, *, opens_first: bool = False
) -> None:
    """Serve until the client hangs up or a signal comes; then shut down. A second signal ends the process.

    `opens_first`: the handshake waits until everything is open. If that fails, this raises the reason.
    """
    stdio_server = StdioServer(server_info, open_server)
    pipe = stdio_server.pipe
    async with aclosing(stdio_server.lazy) as lazy:
        if opens_first:
            await lazy.wait_open()
        await stdio_server.open()
        with EndSignals(pipe.ended):
            for _ in range(GREETING_TURNS):
                await asyncio.sleep(0)
            try:
                try:
                    opened = await lazy.wait_open()
                    await pipe.ended.wait()
                    opened.server.end_subscriptions()
                finally:
                    # A client that writes its requests and closes its end still wants the quick answers.
                    await pipe.peer.wait_served(QUICK_S)
                await opened.shutdown()
            finally:
                await pipe.aclose()
