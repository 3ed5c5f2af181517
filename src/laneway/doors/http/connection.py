"""One HTTP connection: uvicorn's protocol with deadlines for reading, counted by `ConnectionLimits`.

uvicorn itself waits for ever for the rest of a request. Here a connection is aborted when its time is
up: for sending the token, for the headers of a request, for a body. (The application answers a late body
before that; but it may have answered the request already.) The application decides whether a request
has the token: it then calls the function it finds as `PROVE` in the scope's `EXTENSIONS`.

Imported by `serving` only when uvicorn is known to be installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from laneway.core.ports import Clock
from laneway.doors.connection_limits import Arrival, ConnectionLimits
from laneway.doors.http.exchange import EXTENSIONS, PROVE

Awaited: TypeAlias = tuple[Literal["head", "body"], RequestResponseCycle | None]
"""What a client has begun to send and not finished; and the request that it belongs to, or the one before."""


class Deadlines(NamedTuple):
    """Seconds to finish what a client has begun to send."""

    head_s: float
    body_s: float


class HttpConnection(H11Protocol):
    """Made by uvicorn for each connection, with keyword arguments; the first three are bound by us."""

    def __init__(
        self, limits: ConnectionLimits, clock: Clock, deadlines: Deadlines, **from_uvicorn: Any
    ) -> None:
        super().__init__(**from_uvicorn)
        self._limits = limits
        self._clock = clock
        self._deadlines = deadlines
        self._arrival: Arrival
        self._awaited: Awaited | None = None
        self._stop_clock: Callable[[], None] | None = None
        application = self.app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope.setdefault(EXTENSIONS, {})[PROVE] = self._arrival.prove
            await application(scope, receive, send)

        self.app = app

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # Until it has sent the token, this is its deadline for everything.
        self._arrival = self._limits.arrive(transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrival.leave()
        self._expect(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect(self._now_awaited())

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect(self._now_awaited())  # uvicorn has moved on to the next pipelined request

    def _now_awaited(self) -> Awaited | None:
        if self.transport.is_closing():
            return None
        if self.conn.their_state is h11.SEND_BODY:
            return "body", self.cycle
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            return "head", self.cycle
        return None

    def _expect(self, awaited: Awaited | None) -> None:
        """Start the clock when something new is awaited: data that trickles in does not restart it."""
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._stop_clock is not None:
            self._stop_clock()
            self._stop_clock = None
        if awaited is not None:
            seconds = self._deadlines.head_s if awaited[0] == "head" else self._deadlines.body_s
            self._stop_clock = self._clock.after(seconds, self.transport.abort)
