"""ACP over a WebSocket, for editors on another machine: one message a frame, several clients at once.

Only whoever knows the token gets in (`laneway.doors.gate`), and only from this machine unless that
was chosen. Each connection is a principal of its own: its sessions end with it, and go on in the
next one by `session/load`.
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
from laneway.doors.acp.faults import INTERNAL_ERROR
from laneway.doors.acp.handshake import MAX_MESSAGE_BYTES, Engage, Greeting, Handshake, cancel_notice
from laneway.doors.connection_limits import ConnectionLimits
from laneway.doors.gate import AccessDenied, Gate, Headers, host_names
from laneway.doors.listening import bind
from laneway.wire.frames import as_line
from laneway.wire.peer import Peer

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

log = logging.getLogger(__name__)

MAX_CLIENTS = 64
"""At once; the next one is told to come again."""
MAX_UNPROVEN = 128
"""Connections that have not shown the token yet; one more takes the place of the oldest."""
BACKLOG = MAX_UNPROVEN // 2
"""Accepted in one go. Fewer than there is room for: whoever has just come can still show its token."""
UNPROVEN_S = 10.0
"""For a connection to show the token: the headers of its handshake."""
CLOSE_S = 2.0
"""For the last messages to reach clients that still read."""
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
    """Serve until `stop`. `on_ready` is given the URL once clients can connect.

    `on_stop` is called before clients are sent away, and their sessions closed with them.
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
    counter = SocketServer(greeting, engage, Gate(tokens, names, origins))
    async with library.serve(
        counter.meet,
        sock=listening,
        backlog=BACKLOG,
        process_request=counter.admit,
        create_connection=_counted(library, limits),
        open_timeout=None,  # the limits have one, which ends what was sent half, too
        max_size=MAX_MESSAGE_BYTES,
        close_timeout=CLOSE_S,
        server_header=None,
    ):
        shown = f"[{address}]" if ":" in address else address
        on_ready(f"ws://{shown}:{bound}{PATH}")
        await stop.wait()
        on_stop()
        limits.refuse_unproven()


class SocketServer:
    """Meets every client that comes."""

    def __init__(self, greeting: Greeting, engage: Engage, gate: Gate) -> None:
        self._greeting = greeting
        self._engage = engage
        self._gate = gate

    def admit(self, connection: Any, request: Request) -> Response | None:
        """Before anything else of the client's is looked at."""
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

    async def meet(self, socket: ServerConnection) -> None:
        """One client, until it goes."""
        wire = SocketPeer(socket)
        reception = Handshake(self._greeting, self._engage, lambda: wire.peer)
        wire.open(reception)
        try:
            await wire.carry()
        finally:
            await wire.give_up()
            await reception.aclose()
            await socket.close()


class SocketPeer:
    """A peer on a socket: its lines are frames."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._wake = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self.peer: Peer

    def open(self, reception: Handshake) -> None:
        self.peer = Peer(
            self._send,
            on_request=reception.on_request,
            on_notification=reception.on_notification,
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

    async def carry(self) -> None:
        """Both ways, until the client is gone."""
        from websockets.exceptions import ConnectionClosed

        ways = [asyncio.ensure_future(way) for way in (self._read(), self._write())]
        try:
            # Whichever ends first: while reading stands still, only the writing end hears of a loss.
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        except ConnectionClosed as gone:
            log.info("a client of the socket is gone: %s", gone)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

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

    async def give_up(self) -> None:
        """Nobody is there to be answered: what is still being served ends, and opens nothing any more."""
        self.peer.feed_eof()
        await self.peer.wait_served(CLOSE_S)


def _counted(library: Any, limits: ConnectionLimits) -> Any:
    """The library's connections, each with a place in the limits from its first moment."""

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
