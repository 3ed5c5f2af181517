"""ACP over a WebSocket, for editors on another machine: one message per frame, several clients at once.

A client needs the token (`laneway.doors.gate`); other machines can connect only if that was allowed.
Each connection is a principal of its own: its sessions are closed with it, and another connection can
open them again by `session/load`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from laneway.base.clock import LoopClock
from laneway.base.errors import UsageError
from laneway.core.ports import Clock
from laneway.doors.acp.handshake import MAX_MESSAGE_BYTES, Engage, Greeting, Handshake, cancel_notice
from laneway.doors.connection_limits import ConnectionLimits
from laneway.doors.gate import AccessDenied, Gate, Headers, host_names
from laneway.doors.listening import bind
from laneway.wire.frames import as_line
from laneway.wire.messages import INTERNAL_ERROR
from laneway.wire.peer import Peer

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

log = logging.getLogger(__name__)

MAX_CLIENTS = 64
"""At once; a further one gets status 503."""
MAX_UNPROVEN = 128
"""Connections that have not sent the token yet; one more replaces the oldest."""
BACKLOG = MAX_UNPROVEN // 2
"""Connections accepted at once. Below `MAX_UNPROVEN`, so that a new one has time to send its token."""
UNPROVEN_S = 10.0
"""For a connection to send the headers of its handshake, with the token."""
CLOSE_S = 2.0
"""For the last messages to be sent to clients that still read."""
PATH = "/acp"


async def serve_socket(
    greeting: Greeting,
    engage: Engage,
    *,
    host: str,
    port: int,
    tokens: Iterable[str],
    stop: asyncio.Event,
    on_ready: Callable[[str], None],
    on_stop: Callable[[], None] = lambda: None,
    may_leave_machine: bool = False,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    clock: Clock | None = None,
    max_unproven: int = MAX_UNPROVEN,
) -> None:
    """Serve until `stop`. `on_ready` gets the URL once clients can connect.

    `on_stop` is called before the connections, and their sessions with them, are closed.
    """
    library = _websockets()
    listening = bind(host, port, remote_flag="--ws-remote", may_leave_machine=may_leave_machine)
    address, bound = listening.getsockname()[:2]
    names = host_names(host, bound, hosts) | host_names(address, bound)
    limits = ConnectionLimits(
        clock or LoopClock(),
        server="ACP on a WebSocket",
        max_unproven=max_unproven,
        max_proven=MAX_CLIENTS,
        unproven_s=UNPROVEN_S,
    )
    server = SocketServer(greeting, engage, Gate(tokens, names, origins))
    async with library.serve(
        server.serve_client,
        sock=listening,
        backlog=BACKLOG,
        process_request=server.admit,
        create_connection=_counted_connection_class(library, limits),
        open_timeout=None,  # `limits` has one, which also ends half-sent requests
        max_size=MAX_MESSAGE_BYTES,
        close_timeout=CLOSE_S,
        server_header=None,
    ):
        url_host = f"[{address}]" if ":" in address else address
        on_ready(f"ws://{url_host}:{bound}{PATH}")
        await stop.wait()
        on_stop()
        limits.refuse_unproven()


class SocketServer:
    """Checks and serves the connections of one listening socket."""

    def __init__(self, greeting: Greeting, engage: Engage, gate: Gate) -> None:
        self._greeting = greeting
        self._engage = engage
        self._gate = gate

    def admit(self, connection: Any, request: Request) -> Response | None:
        """The refusal of an HTTP request without the right origin, token or path; None accepts it."""
        try:
            raw = [
                (name.encode("latin-1"), value.encode("latin-1", "surrogateescape"))
                for name, value in request.headers.raw_items()
            ]
            headers = Headers(raw)
            self._gate.check_place(headers)
            self._gate.admit(headers)
            if request.path != PATH:
                raise AccessDenied(404, f"The way in is {PATH}")
            if not connection.arrival.prove():
                raise AccessDenied(503, f"No more than {MAX_CLIENTS} clients at once")
        except AccessDenied as refused:
            response: Response = connection.respond(refused.status, refused.text + "\n")
            for name, value in refused.headers:
                response.headers[name] = value
            return response
        return None

    async def serve_client(self, socket: ServerConnection) -> None:
        """Serve one client until it disconnects."""
        connection = SocketPeer(socket)
        handshake = Handshake(self._greeting, self._engage, lambda: connection.peer)
        connection.open(handshake)
        try:
            await connection.run()
        finally:
            await connection.stop()
            await handshake.aclose()
            await socket.close()


class SocketPeer:
    """A JSON-RPC peer on a WebSocket: each line is a frame."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._wake = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self.peer: Peer

    def open(self, handshake: Handshake) -> None:
        self.peer = Peer(
            self._send,
            on_request=handshake.on_request,
            on_notification=handshake.on_notification,
            backlog_bytes=lambda: self._unsent_bytes,
            pause_reading=self._may_read.clear,
            resume_reading=self._may_read.set,
            cancel_notice=cancel_notice,
            refusal=INTERNAL_ERROR,
            max_bytes=MAX_MESSAGE_BYTES,
        )

    def _send(self, lines: bytes) -> None:
        self._unsent.append(lines)
        self._unsent_bytes += len(lines)
        self._wake.set()

    async def run(self) -> None:
        """Read and write until the client disconnects."""
        from websockets.exceptions import ConnectionClosed

        tasks = [asyncio.ensure_future(work) for work in (self._read(), self._write())]
        try:
            # Whichever ends first: while reading is paused, only writing notices a lost connection.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except ConnectionClosed as gone:
            log.info("a client of the socket is gone: %s", gone)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            await self._may_read.wait()
            message = await self._socket.recv(decode=False)
            self.peer.feed(as_line(bytes(message)))

    async def _write(self) -> None:
        while True:
            while self._unsent:
                lines = self._unsent.popleft()
                for line in lines.split(b"\n")[:-1]:
                    await self._socket.send(line, text=True)
                self._unsent_bytes -= len(lines)
                self.peer.drained()
            self._wake.clear()
            await self._wake.wait()

    async def stop(self) -> None:
        """Cancel the requests that are still being served: there is no client to answer."""
        self.peer.feed_eof()
        await self.peer.wait_served(CLOSE_S)


def _counted_connection_class(library: Any, limits: ConnectionLimits) -> Any:
    """The library's connection class, extended so that `limits` counts each connection from its start."""

    class CountedConnection(library.ServerConnection):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.arrival = limits.arrive(transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            self.arrival.leave()
            super().connection_lost(exc)

    return CountedConnection


def _websockets() -> Any:
    try:
        import websockets.asyncio.server as library
    except ImportError as problem:
        from laneway.base.installed import installed_how

        line = installed_how().adding("ws")
        raise UsageError(
            f"Serving on a WebSocket needs one more package: install it with `{line}`."
        ) from problem
    return library
