"""JSON-RPC both ways over any byte pipe: the one dispatcher for app-server, MCP and ACP.

Sans-IO: bytes come in through `feed`, bytes go out through the `send` it was given.
Owns the two id spaces (ours: `pending`; theirs: `in_flight`), their cancellation and
the one boundary where an exception becomes a wire error. Knows no method by name.

The reader awaits nobody: notifications are handed over in receive order by a plain
call; each request gets a task of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import msgspec

from laneway.base.errors import RemoteError, WireBroken, WireClosed, WireError
from laneway.wire.frames import MAX_FRAME_BYTES, LineDecoder

log = logging.getLogger(__name__)

MAX_BACKLOG_BYTES = 8 * 1024 * 1024
"""Unsent bytes past which notifications are dropped: a reader this far behind has stopped reading."""
MAX_IN_FLIGHT = 1024
"""Requests of the other end served at once; the next one is refused, not queued."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CLOSING = -32000

T = TypeVar("T")
Raw = msgspec.Raw


class Envelope(msgspec.Struct):
    """Any JSON-RPC message; what is inside stays undecoded until somebody wants it."""

    id: Raw = Raw()
    method: str | None = None
    params: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()


class _ErrorBody(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


_decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode_error = msgspec.json.Decoder(_ErrorBody).decode
_encode = msgspec.json.Encoder().encode

OnNotification = Callable[[str, Raw, bytes], None]
"""method, params, the whole frame. Called on the reader: it must not block or await."""
OnRequest = Callable[[str, Raw, bytes], Awaitable[Any]]
"""method, params, the request's id as it stood on the wire; returns the result or raises."""
Notice = Callable[[bytes], tuple[str, Any]]
"""From the id of a call that we gave up to the notification that says so."""


def _no_backlog() -> int:
    return 0


class Peer:
    def __init__(
        self,
        send: Callable[[bytes], None],
        *,
        on_request: OnRequest,
        on_notification: OnNotification,
        backlog_bytes: Callable[[], int] = _no_backlog,
        on_garbage: Callable[[bytes, str], None] | None = None,
        cancel_notice: Notice | None = None,
        with_header: bool = True,
        max_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        self._send_bytes = send
        self._on_request = on_request
        self._on_notification = on_notification
        self._backlog_bytes = backlog_bytes
        self._on_garbage = on_garbage
        self._cancel_notice = cancel_notice
        # app-server omits "jsonrpc"; MCP and ACP demand it. Both are read.
        self._head = b'{"jsonrpc":"2.0",' if with_header else b"{"
        self._decoder = LineDecoder(max_bytes, self._report_oversize)
        self._ids = itertools.count(1)
        self._pending: dict[bytes, tuple[asyncio.Future[Raw], Callable[[Raw], None] | None]] = {}
        self._in_flight: dict[bytes, asyncio.Task[None]] = {}
        self._outbox: list[bytes] = []
        self._flush_scheduled = False
        self._closed: WireError | None = None
        self.dropped_notifications = 0

    # ── out ────────────────────────────────────────────────────────────────

    @overload
    async def call(
        self, method: str, params: Any = ..., *, on_reply: Callable[[Raw], None] | None = ...
    ) -> Any: ...

    @overload
    async def call(
        self, method: str, params: Any = ..., *, reply: type[T], on_reply: Callable[[Raw], None] | None = ...
    ) -> T: ...

    async def call(
        self,
        method: str,
        params: Any = None,
        *,
        reply: Any = Any,
        on_reply: Callable[[Raw], None] | None = None,
    ) -> Any:
        """Send a request and return its result; raise `RemoteError`, `WireClosed` or `WireBroken`.

        `on_reply` sees a good result on the reader, before any later message is looked at.
        """
        if self._closed:
            raise self._closed
        request_id = b"%d" % next(self._ids)
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = (answer, on_reply)
        body = b"" if params is None else b',"params":' + _encode(params)
        self._post(self._head + b'"id":' + request_id + b',"method":' + _encode(method) + body + b"}\n")
        try:
            result = await answer
        except asyncio.CancelledError:
            if self._pending.pop(request_id, None) is not None and self._cancel_notice and not self._closed:
                self.notify(*self._cancel_notice(request_id))
            raise
        return msgspec.json.decode(result, type=reply)

    def notify(self, method: str, params: Any = None) -> bool:
        """Send a notification, or drop and count it when the other end has stopped reading."""
        if self._closed:
            return False
        if self._backlog_bytes() > MAX_BACKLOG_BYTES:
            self.dropped_notifications += 1
            return False
        body = b"" if params is None else b',"params":' + _encode(params)
        self._post(self._head + b'"method":' + _encode(method) + body + b"}\n")
        return True

    def _post(self, message: bytes) -> None:
        # One write for all that is said in this turn of the loop; nothing waits longer than that.
        self._outbox.append(message)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._outbox:
            data = b"".join(self._outbox)
            self._outbox.clear()
            self._send_bytes(data)

    # ── in ─────────────────────────────────────────────────────────────────

    def feed(self, data: bytes) -> None:
        """Take bytes from the other end. Never raises, whatever they are."""
        notify = self._on_notification
        for frame in self._decoder.feed(data):
            try:
                message = _decode_envelope(frame)
            except (msgspec.DecodeError, RecursionError) as problem:
                self._garbage(frame, problem)
                continue
            if message.method is None:
                self._resolve(message, frame)
            elif message.id:
                self._serve(message.method, message.params, bytes(message.id))
            else:
                try:
                    notify(message.method, message.params, frame)
                except Exception:
                    log.exception("handling notification %s failed", message.method)

    def feed_eof(self, error: WireError | None = None) -> None:
        """The other end is gone: everything that waits for it hears so."""
        self._shut(error or WireBroken("The connection ended"))
        for task in self._in_flight.values():
            task.cancel()

    def _resolve(self, message: Envelope, frame: bytes) -> None:
        if not (message.id and (message.result or message.error)):
            self._garbage(frame, None)
            return
        waiting = self._pending.pop(bytes(message.id), None)
        if waiting is None:
            log.debug("an answer to no open request: %s", bytes(message.id)[:80])
            return
        answer, on_reply = waiting
        if message.error and bytes(message.error) != b"null":
            try:
                body = _decode_error(message.error)
            except msgspec.DecodeError:
                body = _ErrorBody(message="The other end sent an error that is none")
            if not answer.done():
                answer.set_exception(RemoteError(body.code, body.message, body.data))
            return
        if on_reply is not None:
            on_reply(message.result)
        if not answer.done():
            answer.set_result(message.result)

    def _serve(self, method: str, params: Raw, request_id: bytes) -> None:
        if self._closed:
            return
        if request_id in self._in_flight:
            self._reply_error(request_id, INVALID_REQUEST, "This request id is in use")
        elif len(self._in_flight) >= MAX_IN_FLIGHT:
            self._reply_error(request_id, CLOSING, f"More than {MAX_IN_FLIGHT} requests at once")
        else:
            task = asyncio.get_running_loop().create_task(self._run(method, params, request_id))
            self._in_flight[request_id] = task

    async def _run(self, method: str, params: Raw, request_id: bytes) -> None:
        try:
            result = await self._on_request(method, params, request_id)
            body = b'"result":' + _encode(result)
        except asyncio.CancelledError:
            if self._in_flight.pop(request_id, None) is not None:
                self._reply_error(request_id, CLOSING, "The connection is closing")
            raise
        except Exception as error:  # noqa: BLE001  the one boundary from exception to wire error
            body = b'"error":' + _encode(wire_error(error, method))
        if self._in_flight.pop(request_id, None) is not None and not self._closed:
            self._post(self._head + b'"id":' + request_id + b"," + body + b"}\n")

    def cancel_theirs(self, request_id: bytes, answer: RemoteError | None = None) -> bool:
        """The other end gave up one of its requests: stop serving it, answer only if told to."""
        task = self._in_flight.pop(request_id, None)
        if task is None:
            return False
        task.cancel()
        if answer is not None:
            self._reply_error(request_id, answer.code, answer.message)
        return True

    def _reply_error(self, request_id: bytes, code: int, message: str) -> None:
        if not self._closed:
            body = _encode({"code": code, "message": message})
            self._post(self._head + b'"id":' + request_id + b',"error":' + body + b"}\n")

    def _garbage(self, frame: bytes, problem: Exception | None) -> None:
        if frame.isspace():
            return
        if self._on_garbage is not None:
            self._on_garbage(frame, str(problem or "neither request nor answer"))
        elif problem is None or isinstance(problem, msgspec.ValidationError):
            self._reply_error(b"null", INVALID_REQUEST, "This is not a JSON-RPC message")
        else:
            self._reply_error(b"null", PARSE_ERROR, "This is not JSON")

    def _report_oversize(self, size: int) -> None:
        log.warning("a message of more than %d bytes was skipped", size)
        if self._on_garbage is not None:
            self._on_garbage(b"", f"a message of more than {size} bytes was skipped")
        else:
            self._reply_error(b"null", INVALID_REQUEST, "The message is too long and was skipped")

    # ── end ────────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """Answer what is open on both sides, hand over what is unsent, accept nothing more."""
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._flush()
        self._shut(WireClosed("The connection was closed"))

    def _shut(self, error: WireError) -> None:
        if self._closed is None:
            self._closed = error
        for answer, _ in self._pending.values():
            if not answer.done():
                answer.set_exception(error)
        self._pending.clear()


def wire_error(error: Exception, method: str) -> dict[str, Any]:
    """The one place where an exception becomes a wire error. Foreign texts stay inside."""
    if isinstance(error, RemoteError):
        body: dict[str, Any] = {"code": error.code, "message": error.message}
        return body if error.data is None else {**body, "data": error.data}
    if isinstance(error, msgspec.ValidationError):
        return {"code": INVALID_PARAMS, "message": f"Invalid params: {error}"}
    log.error("serving %s failed", method, exc_info=error)
    return {"code": INTERNAL_ERROR, "message": "Internal error"}
