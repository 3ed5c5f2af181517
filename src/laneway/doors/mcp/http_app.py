"""The ASGI application of MCP over HTTP: routes each request to its session and writes the response.

A POST is answered by JSON, or by a stream of events when there is more to send than the answer; GET
opens a stream for what belongs to no call; DELETE ends a session. The `MCP-Protocol-Version` header
tells the era. Access control is in `laneway.doors.gate`, the state of each client in `http_sessions`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.core.ports import Clock
from laneway.doors.gate import AccessDenied, Gate, Headers
from laneway.doors.http.exchange import HttpExchange, Receive, Scope, Send
from laneway.doors.http.streams import PING, ResponseStream, StreamReader, event_position
from laneway.doors.mcp import http_guard as guard
from laneway.doors.mcp.eras import HANDSHAKE_VERSIONS, UNKNOWN_CLIENT, VERSION_KEY, WITH_BATCHES
from laneway.doors.mcp.http_sessions import HttpSession, HttpSessions, HttpTiming
from laneway.doors.mcp.server import McpServer
from laneway.wire import batch as batches
from laneway.wire.messages import (
    METHOD_NOT_FOUND,
    UNREADABLE,
    Envelope,
    Fault,
    decode_envelope,
    encode,
    fault_of,
    is_utf8,
    mend,
)

PATH = "/mcp"

_JSON = ("content-type", "application/json")
_EVENTS = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache, no-transform"),
    # Proxies would buffer events.
    ("x-accel-buffering", "no"),
)
_WITH_OPENING = HANDSHAKE_VERSIONS[-1]
"""Since this version clients understand an event that only carries an id."""


class HttpApp:
    """The application: called once for each request."""

    def __init__(
        self,
        server: McpServer,
        gate: Gate,
        clock: Clock,
        timing: HttpTiming = HttpTiming(),  # noqa: B008  frozen
    ) -> None:
        self.sessions = HttpSessions(server, clock, timing)
        self._gate = gate
        self._timing = timing
        self._is_closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            exchange = HttpExchange(scope, receive, send)
            await self._respond(exchange)
        except AccessDenied as refusal:
            await _refuse(send, refusal)

    async def _respond(self, exchange: HttpExchange) -> None:
        self._gate.check_place(exchange.headers)
        if exchange.path != PATH:
            raise AccessDenied(404, f"There is nothing here; the MCP endpoint is {PATH}")
        principal = self._gate.admit(exchange.headers)
        exchange.prove()
        match exchange.method:
            case "POST":
                await self._post(exchange, principal)
            case "GET" if not _is_stateless(exchange.headers):
                await self._get(exchange, principal)
            case "DELETE" if not _is_stateless(exchange.headers):
                await self.sessions.end(self._session(exchange, principal))
                await exchange.answer(204)
            case _:
                allowed = "POST" if _is_stateless(exchange.headers) else "POST, GET, DELETE"
                raise AccessDenied(405, "This method is not served here", headers=(("allow", allowed),))

    def refuse_new(self) -> None:
        """Refuse new requests; running ones may end, and answers to our own questions are still taken."""
        self._is_closing = True

    async def aclose(self) -> None:
        self._is_closing = True
        await self.sessions.aclose()

    # ── POST ───────────────────────────────────────────────────────────────

    async def _post(self, exchange: HttpExchange, principal: str) -> None:
        headers = exchange.headers
        if (headers.get("content-type") or "").partition(";")[0].strip().lower() != "application/json":
            raise AccessDenied(415, "The body of a request is application/json")
        if not (headers.accepts("application/json") and headers.accepts("text/event-stream")):
            raise AccessDenied(406, "A client must accept application/json and text/event-stream")
        frame = mend(await exchange.body(self._timing.body_s))
        if _is_stateless(headers):
            await self._post_stateless(exchange, principal, frame)
        else:
            await self._post_in_session(exchange, principal, frame)

    async def _post_in_session(self, exchange: HttpExchange, principal: str, frame: bytes) -> None:
        messages = parsed(frame)
        is_batch = batches.is_array(frame)
        first = messages[0][0]
        if exchange.headers.get("mcp-session-id") is not None:
            session = self._session(exchange, principal)
            if is_batch and session.client.version not in WITH_BATCHES:
                raise AccessDenied(400, batches.REFUSED.text)
        elif first.method == "initialize" and first.id and not is_batch:
            session = self._opened(principal)
        else:
            if not is_batch:
                _check_era(exchange.headers, first)
            raise AccessDenied(400, "The Mcp-Session-Id header is missing; a session begins with initialize")
        self.sessions.enter(session)
        try:
            await self._serve_messages(exchange, session, messages, is_batch=is_batch)
        finally:
            self.sessions.leave(session)
            if session.client is UNKNOWN_CLIENT:
                self.sessions.end(session)  # its initialize failed

    def _opened(self, principal: str) -> HttpSession:
        session = None if self._is_closing else self.sessions.open(principal)
        if session is None:
            raise AccessDenied(503, "No further session can be opened now", headers=(("retry-after", "5"),))
        return session

    async def _serve_messages(
        self,
        exchange: HttpExchange,
        session: HttpSession,
        messages: list[tuple[Envelope, int]],
        *,
        is_batch: bool,
    ) -> None:
        requests = [(message, size) for message, size in messages if message.method and message.id]
        self._check_ids(session, requests)
        is_new = session.client is UNKNOWN_CLIENT
        for message, _ in messages:
            if not (message.method and message.id):
                session.receive(message)
        if not requests:
            await exchange.answer(202)
            return
        stream = session.serve(requests)
        reader = stream.attach()
        try:
            with exchange.watched(reader):
                await self._deliver(exchange, session, stream, reader, is_new=is_new, is_batch=is_batch)
        finally:
            session.connection_ended(stream, reader)

    def _check_ids(self, session: HttpSession, requests: list[tuple[Envelope, int]]) -> None:
        seen: set[bytes] = set()
        for request, _ in requests:
            request_id = bytes(request.id)
            if session.is_in_use(request_id) or request_id in seen:
                raise AccessDenied(400, "This request id is in use", request_id=request_id)
            seen.add(request_id)
        if requests and self._is_closing:
            raise AccessDenied(503, "The server is closing")

    async def _deliver(
        self,
        exchange: HttpExchange,
        session: HttpSession,
        stream: ResponseStream,
        reader: StreamReader,
        *,
        is_new: bool = False,
        is_batch: bool = False,
    ) -> None:
        """Respond with JSON if the answer is all there is, else (or after `ping_s`) with an event stream."""
        await reader.wait(self._timing.ping_s)
        if reader.has_left:
            return
        answer = None if is_batch else stream.only_answer
        is_opened = is_new and session.client is not UNKNOWN_CLIENT
        session_header = (("mcp-session-id", session.session_id),) if is_opened else ()
        if answer is not None:
            stream.take()
            status = 200 if session.session_id else guard.status_of(answer)
            await exchange.answer(status, answer, _JSON, *session_header)
            return
        if session.session_id:
            session.keep(stream)
        has_opening = session.session_id and session.client.version == _WITH_OPENING
        await exchange.begin(200, *_EVENTS, *session_header)
        await self._stream_events(exchange, stream, reader, stream.opening() if has_opening else b"")

    async def _stream_events(
        self, exchange: HttpExchange, stream: ResponseStream, reader: StreamReader, opening: bytes = b""
    ) -> None:
        if opening:
            await exchange.write(opening)
        while not reader.is_over:
            if stream.has_more:
                await exchange.write(stream.take())
            elif not await reader.wait(self._timing.ping_s):
                await exchange.write(PING)
        if not reader.has_left:
            await exchange.write(b"", more=False)

    # ── the stateless era ──────────────────────────────────────────────────

    async def _post_stateless(self, exchange: HttpExchange, principal: str, frame: bytes) -> None:
        if batches.is_array(frame):
            raise AccessDenied(400, batches.REFUSED.text)
        message, size = parsed(frame)[0]
        if message.method is None:
            raise AccessDenied(400, "A client of this era sends requests and notifications")
        if not message.id:
            # No notification is defined. A client cancels by hanging up: an id alone does not name its owner.
            await exchange.answer(202)
            return
        request_id = bytes(message.id)
        guard.check_mirrors(exchange.headers, message.method, _decoded(message), request_id)
        if message.method == "initialize":
            raise AccessDenied(
                404, "There is no handshake in this era", code=METHOD_NOT_FOUND, request_id=request_id
            )
        if self._is_closing:
            raise AccessDenied(503, "The server is closing", request_id=request_id)
        session = self.sessions.stateless(principal)
        stream = session.serve([(message, size)])
        reader = stream.attach()
        try:
            with exchange.watched(reader):
                await self._deliver(exchange, session, stream, reader)
        finally:
            # A client that hangs up has cancelled the call.
            await self.sessions.end(session)

    # ── GET ────────────────────────────────────────────────────────────────

    async def _get(self, exchange: HttpExchange, principal: str) -> None:
        if not exchange.headers.accepts("text/event-stream"):
            raise AccessDenied(406, "A client must accept text/event-stream")
        session = self._session(exchange, principal)
        self.sessions.enter(session)
        try:
            stream, reader = self._opened_stream(exchange, session)
            try:
                with exchange.watched(reader):
                    await exchange.begin(200, *_EVENTS)
                    has_opening = session.client.version == _WITH_OPENING
                    # Something must be sent, or the client would not see the response begin.
                    await self._stream_events(
                        exchange, stream, reader, stream.opening() if has_opening else PING
                    )
            finally:
                session.connection_ended(stream, reader)
        finally:
            self.sessions.leave(session)

    def _opened_stream(
        self, exchange: HttpExchange, session: HttpSession
    ) -> tuple[ResponseStream, StreamReader]:
        last = exchange.headers.get("last-event-id")
        if last is None:
            opened = session.open_event_stream()
            if opened is None:
                raise AccessDenied(409, "This session has such a stream already")
            return opened
        position = event_position(last)
        resumed = session.resume(*position) if position is not None else None
        if resumed is None:
            raise AccessDenied(400, "What followed this event is not kept any more")
        return resumed

    def _session(self, exchange: HttpExchange, principal: str) -> HttpSession:
        session_id = exchange.headers.get("mcp-session-id")
        if not session_id:
            raise AccessDenied(400, "The Mcp-Session-Id header is missing")
        session = self.sessions.find(session_id, principal)
        if session is None:
            raise AccessDenied(404, "There is no such session; begin a new one with initialize")
        return session


# ── messages ───────────────────────────────────────────────────────────────


def parsed(frame: bytes) -> list[tuple[Envelope, int]]:
    """The messages of a body, each with its size in bytes."""
    frames = batches.elements(frame) if batches.is_array(frame) else [frame]
    if isinstance(frames, Fault):
        raise AccessDenied(400, frames.text, code=frames.code)
    return [(_message(each), len(each)) for each in frames]


def _message(frame: bytes) -> Envelope:
    try:
        message = decode_envelope(frame)
        if not is_utf8(frame):
            raise _faulty(fault_of(frame))
    except UNREADABLE:
        raise _faulty(fault_of(frame)) from None
    kind = bytes(message.id)[:1]
    if message.id and not (kind == b'"' or kind in b"-0123456789"):
        raise AccessDenied(400, "The id of a request is a string or a number")
    if message.method is None and not (message.id and (message.result or message.error)):
        raise AccessDenied(400, "This is not a JSON-RPC message")
    return message


def _faulty(fault: Fault) -> AccessDenied:
    return AccessDenied(400, fault.text, code=fault.code, request_id=fault.request_id or b"null")


def _decoded(message: Envelope) -> Any:
    try:
        return msgspec.json.decode(message.params) if message.params else None
    except UNREADABLE:
        return None


def _is_stateless(headers: Headers) -> bool:
    """A version that is not of the handshake eras counts as stateless; that era's check reports it."""
    version = headers.get("mcp-protocol-version")
    return version is not None and version not in HANDSHAKE_VERSIONS


def _check_era(headers: Headers, message: Envelope) -> None:
    """A body of the stateless era needs the headers of that era."""
    params = _decoded(message)
    meta = params.get("_meta") if isinstance(params, dict) else None
    if message.method and message.id and isinstance(meta, dict) and VERSION_KEY in meta:
        guard.check_mirrors(headers, message.method, params, bytes(message.id))


async def _refuse(send: Send, refusal: AccessDenied) -> None:
    error: dict[str, Any] = {"code": refusal.code, "message": refusal.text}
    if refusal.data is not None:
        error["data"] = refusal.data
    body = b'{"jsonrpc":"2.0","id":' + refusal.request_id + b',"error":' + encode(error) + b"}"
    headers = (_JSON, ("content-length", str(len(body))), *refusal.headers)
    raw = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
