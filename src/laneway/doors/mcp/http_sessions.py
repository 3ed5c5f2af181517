"""MCP sessions over HTTP: each client's open requests, our questions to it, and its response streams.

A client of the handshake eras has a session with an id that cannot be guessed and that only its own
token opens. What belongs to a call goes to the response of that call; what comes later goes to the
stream that the client opened by GET, or is dropped and counted. In the stateless era a session lasts
one request, has no id, and ends with its connection.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import RemoteError, WireBroken, WireClosed
from laneway.core.background import TaskSet
from laneway.core.ports import Clock
from laneway.doors.http.streams import ResponseStream, StreamReader
from laneway.doors.mcp.eras import UNKNOWN_CLIENT, McpClient
from laneway.doors.mcp.server import Connection, Interests, McpServer
from laneway.wire.messages import INTERNAL_ERROR, UNREADABLE, Envelope, Raw, encode, remote_error
from laneway.wire.service import Service

log = logging.getLogger(__name__)

MAX_SESSIONS = 256
"""Open at once. One more replaces the one that has been idle for longest."""
MAX_KEPT_STREAMS = 32
"""Ended streams of a session that can still be resumed."""
_HEAD = b'{"jsonrpc":"2.0",'
_EVENT_STREAM = "0"
"""The name of the stream that is opened by GET; calls count from one."""


class HttpTiming(msgspec.Struct, frozen=True, kw_only=True):
    """How long the HTTP server waits for what."""

    ping_s: float = 15.0
    """Of silence before a keep-alive comment is sent: well under the half minute that HTTP clients wait."""
    resume_s: float = 60.0
    """For a client to resume a call whose connection it lost; then the call is cancelled."""
    idle_s: float = 1800.0
    """Without any request before a session ends: as long as Claude Code waits for a silent call."""
    body_s: float = 30.0
    """For a request's body to arrive."""


class HttpSession:
    """One client's MCP session. `session_id` is empty in the stateless era."""

    def __init__(
        self, server: McpServer, principal: str, session_id: str, clock: Clock, timing: HttpTiming
    ) -> None:
        self.principal = principal
        self.session_id = session_id
        self.client: McpClient = UNKNOWN_CLIENT
        self.dropped = 0
        """Notifications dropped because the client had no stream for them, or did not read it."""
        self._server = server
        self._clock = clock
        self._timing = timing
        self._service = Service(self._serve, self._reply)
        self._calls: dict[bytes, ResponseStream] = {}
        self._pending: dict[bytes, asyncio.Future[Raw]] = {}
        self._pending_outside_calls: set[bytes] = set()
        """Ids of our requests that belong to no call of the client."""
        self._ids = itertools.count(1)
        self._names = itertools.count(1)
        self._event_stream: ResponseStream | None = None
        self._resumable: dict[str, ResponseStream] = {}
        self._giving_up: dict[ResponseStream, Callable[[], None]] = {}
        self._is_closed = False
        self._interests = Interests()

    @property
    def is_busy(self) -> bool:
        return bool(self._calls)

    # ── what the client sends ──────────────────────────────────────────────

    def serve(self, requests: list[tuple[Envelope, int]]) -> ResponseStream:
        """Serve requests, each given with its size in bytes; all answers go to the stream returned."""
        name = str(next(self._names)) if self.session_id else ""
        stream = ResponseStream(name, answers=len(requests))
        for request, size in requests:
            assert request.method is not None
            request_id = bytes(request.id)
            self._calls[request_id] = stream
            self._service.serve(request.method, request.params, request_id, size=size, batch=None)
        return stream

    def is_in_use(self, request_id: bytes) -> bool:
        return request_id in self._calls

    def receive(self, message: Envelope) -> None:
        """Take a notification, or an answer to a request of ours."""
        if message.method is None:
            self._resolve(message)
        elif message.method == "notifications/cancelled" and message.params:
            try:
                cancelled = msgspec.json.decode(message.params, type=_HttpCancelled)
            except UNREADABLE:
                return
            self.cancel(bytes(cancelled.requestId))

    def cancel(self, request_id: bytes) -> None:
        stream = self._calls.pop(request_id, None)
        if stream is not None:
            self._service.cancel(request_id, None)
            stream.settle(None)

    def _resolve(self, message: Envelope) -> None:
        answer = self._pending.pop(bytes(message.id), None)
        if answer is None or answer.done():
            log.debug("an answer to nothing that was asked")
        elif message.error and bytes(message.error) != b"null":
            answer.set_exception(remote_error(message.error))
        else:
            answer.set_result(message.result or Raw(b"null"))

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        connection = Connection(self.principal, HttpCallerChannel(self, self._calls[request_id]))
        connection.client = self.client
        connection.interests = self._interests
        answer = await self._server.serve(connection, method, params, request_id)
        if method == "initialize":
            self.client = connection.client
        return answer

    def _reply(self, request_id: bytes, body: bytes, batch: object) -> None:
        stream = self._calls.pop(request_id, None)
        if stream is not None:
            stream.settle(_HEAD + b'"id":' + request_id + b"," + body + b"}")

    # ── what the client is sent ────────────────────────────────────────────

    def tell(self, stream: ResponseStream, method: str, params: Any) -> bool:
        """Notify on the call's response while it lasts, later on the stream opened by GET."""
        message = _HEAD + b'"method":' + encode(method) + _params(params) + b"}"
        if stream.tell(message):
            return True
        if stream.is_ended and self._event_stream is not None and self._event_stream.tell(message):
            return True
        self.dropped += 1
        return False

    async def ask(self, stream: ResponseStream, method: str, params: Any) -> Any:
        """Send the client a request on the call's response while it lasts, later on the stream opened by GET.

        `WireBroken` if the client does not read that stream now.
        """
        if not self.session_id:
            raise WireClosed("A client of the stateless era is asked by a result")
        is_outside_calls = stream.is_ended
        target = self._event_stream if is_outside_calls else stream
        if target is None or self._is_closed or (is_outside_calls and not target.is_read):
            raise WireBroken("The client has no connection that it could be asked on")
        request_id = b"%d" % next(self._ids)
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = answer
        if is_outside_calls:
            self._pending_outside_calls.add(request_id)
        target.post(_HEAD + b'"id":' + request_id + b',"method":' + encode(method) + _params(params) + b"}")
        try:
            result = await answer
        except asyncio.CancelledError:
            if self._pending.pop(request_id, None) is not None:
                notice = {"requestId": Raw(request_id), "reason": "no longer needed"}
                target.post(_HEAD + b'"method":"notifications/cancelled"' + _params(notice) + b"}")
            raise
        finally:
            self._pending_outside_calls.discard(request_id)
        try:
            return msgspec.json.decode(result)
        except UNREADABLE as problem:
            raise RemoteError(INTERNAL_ERROR, f"The answer to {method} cannot be read") from problem

    # ── connections that read ──────────────────────────────────────────────

    def open_event_stream(self) -> tuple[ResponseStream, StreamReader] | None:
        """Open the stream for what belongs to no call; none if a connection reads it already."""
        if self._event_stream is None:
            self._event_stream = ResponseStream(_EVENT_STREAM)
            self._resumable[_EVENT_STREAM] = self._event_stream
        if self._event_stream.is_read:
            return None
        self._keep_waiting(self._event_stream)
        return self._event_stream, self._event_stream.attach()

    def resume(self, name: str, number: int) -> tuple[ResponseStream, StreamReader] | None:
        """Continue a stream after this event; none if it is no longer kept."""
        stream = self._resumable.get(name)
        reader = stream.resume(number) if stream is not None else None
        if stream is None or reader is None:
            return None
        self._keep_waiting(stream)
        return stream, reader

    def _keep_waiting(self, stream: ResponseStream) -> None:
        """The client reads it again: do not give it up."""
        stop = self._giving_up.pop(stream, None)
        if stop is not None:
            stop()

    def keep(self, stream: ResponseStream) -> None:
        """The client gets event ids of this stream from now on, so it may resume it."""
        self._resumable[stream.name] = stream
        ended = [name for name, stream in self._resumable.items() if stream.is_ended]
        for name in ended[:-MAX_KEPT_STREAMS]:
            self._forget(self._resumable[name])

    def connection_ended(self, stream: ResponseStream, reader: StreamReader) -> None:
        """A connection ended. If the client does not resume the stream in time, its call is cancelled."""
        stream.detach(reader)
        is_done = stream.is_ended and stream.name not in self._resumable
        if is_done or stream.is_read or self._is_closed or stream in self._giving_up:
            return
        self._giving_up[stream] = self._clock.after(self._timing.resume_s, lambda: self._give_up(stream))

    def _give_up(self, stream: ResponseStream) -> None:
        if stream is self._event_stream:
            self._giving_up.pop(stream, None)
            self._give_up_asking()
            return
        self._forget(stream)
        for request_id in [key for key, target in self._calls.items() if target is stream]:
            log.info("a call was cancelled: its client did not come back for it")
            self.cancel(request_id)

    def _give_up_asking(self) -> None:
        """The client has gone: our requests outside of calls will not be answered."""
        for request_id in self._pending_outside_calls:
            answer = self._pending.pop(request_id, None)
            if answer is not None and not answer.done():
                answer.set_exception(WireBroken("The client did not come back for what it was asked"))

    def _forget(self, stream: ResponseStream) -> None:
        self._resumable.pop(stream.name, None)
        self._keep_waiting(stream)

    async def aclose(self) -> None:
        """Cancel what runs, answer it, and end all streams."""
        self._is_closed = True
        self._interests.clear()
        for stop in self._giving_up.values():
            stop()
        self._giving_up.clear()
        try:
            await self._service.aclose()
        finally:
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(WireClosed("The session was closed"))
            self._pending.clear()
            for stream in (*self._resumable.values(), *self._calls.values()):
                stream.end()
            self._resumable.clear()


class HttpCallerChannel:
    """A `CallerChannel` to the client that made one call."""

    def __init__(self, session: HttpSession, stream: ResponseStream) -> None:
        self._session = session
        self._stream = stream

    def notify(self, method: str, params: Any) -> bool:
        return self._session.tell(self._stream, method, params)

    async def call(self, method: str, params: Any) -> Any:
        return await self._session.ask(self._stream, method, params)


class _HttpCancelled(msgspec.Struct):
    requestId: Raw = Raw()


def _params(params: Any) -> bytes:
    return b"" if params is None else b',"params":' + encode(params)


# ── all of them ────────────────────────────────────────────────────────────


class HttpSessions:
    """All open sessions, until their client ends them or they are idle for too long."""

    def __init__(self, server: McpServer, clock: Clock, timing: HttpTiming) -> None:
        self._server = server
        self._clock = clock
        self._timing = timing
        self._open: dict[str, HttpSession] = {}
        self._open_requests: dict[str, int] = {}
        self._expiry: dict[str, Callable[[], None]] = {}
        """In the order in which they fell idle."""
        self._ending = TaskSet()

    def stateless(self, principal: str) -> HttpSession:
        return HttpSession(self._server, principal, "", self._clock, self._timing)

    def open(self, principal: str) -> HttpSession | None:
        """A new session, or none if there are too many and all of them are in use."""
        if len(self._open) >= MAX_SESSIONS:
            longest = next(iter(self._expiry), None)
            if longest is None:
                return None
            self.end(self._open[longest])
        session = HttpSession(self._server, principal, secrets.token_urlsafe(32), self._clock, self._timing)
        self._open[session.session_id] = session
        self._open_requests[session.session_id] = 0
        return session

    def find(self, session_id: str, principal: str) -> HttpSession | None:
        """The session, if it is this principal's; another's is as unknown."""
        session = self._open.get(session_id)
        return session if session is not None and session.principal == principal else None

    def enter(self, session: HttpSession) -> None:
        """A request of this session begins: the session is not idle until its `leave`."""
        key = session.session_id
        if key in self._open:
            self._open_requests[key] += 1
            stop = self._expiry.pop(key, None)
            if stop is not None:
                stop()

    def leave(self, session: HttpSession) -> None:
        key = session.session_id
        if key not in self._open:
            return
        self._open_requests[key] -= 1
        if self._open_requests[key] == 0:
            self._expiry[key] = self._clock.after(self._timing.idle_s, lambda: self._expire(session))

    def _expire(self, session: HttpSession) -> None:
        log.info("an HTTP session was idle for too long and has ended")
        self.end(session)

    def end(self, session: HttpSession) -> asyncio.Task[None]:
        """Remove the session and cancel what it still does."""
        key = session.session_id
        self._open.pop(key, None)
        self._open_requests.pop(key, None)
        stop = self._expiry.pop(key, None)
        if stop is not None:
            stop()
        return self._ending.spawn(session.aclose(), "end of an HTTP session")

    @property
    def count(self) -> int:
        return len(self._open)

    async def aclose(self) -> None:
        for session in list(self._open.values()):
            self.end(session)
        await self._ending.wait()
