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
CLOSE_S = 2.0
"""For handlers to end once they are cancelled; whoever takes longer is answered for."""

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


class _Claim(msgspec.Struct):
    """What can still be told of an object that is no message."""

    id: Raw = Raw()
    method: Raw = Raw()


_decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode_error = msgspec.json.Decoder(_ErrorBody).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode
_encode = msgspec.json.Encoder().encode

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""All that decoding foreign bytes can raise; bad UTF-8 is no `DecodeError` to msgspec."""
_UNSPEAKABLE = (TypeError, ValueError, RecursionError)
"""All that encoding our own values can raise."""

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
        # Also those that `cancel_theirs` has stopped and that are not through yet.
        self._tasks: set[asyncio.Task[None]] = set()
        self._outbox: list[bytes] = []
        self._flush_scheduled = False
        self._closing = False
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
            # Raised many times: without this it would gather a traceback, with its frames, each time.
            raise self._closed.with_traceback(None)
        request_id = b"%d" % next(self._ids)
        body = b"" if params is None else b',"params":' + _encode(params)
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = (answer, on_reply)
        self._post(self._head + b'"id":' + request_id + b',"method":' + _encode(method) + body + b"}\n")
        try:
            result = await answer
        except asyncio.CancelledError:
            if self._pending.pop(request_id, None) is not None and self._cancel_notice and not self._closed:
                # Never dropped: the other end would go on with what nobody waits for.
                self.notify(*self._cancel_notice(request_id), may_drop=False)
            raise
        try:
            return msgspec.json.decode(result, type=reply)
        except _UNREADABLE as problem:
            raise RemoteError(INTERNAL_ERROR, f"The answer to {method} cannot be read") from problem

    def notify(self, method: str, params: Any = None, *, may_drop: bool = True) -> bool:
        """Send a notification, or drop and count it when the other end has stopped reading."""
        if self._closed:
            return False
        if may_drop and self._backlog_bytes() > MAX_BACKLOG_BYTES:
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
            except _UNREADABLE as problem:
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
        self._in_flight.clear()
        for task in self._tasks:
            task.cancel()

    def _resolve(self, message: Envelope, frame: bytes) -> None:
        is_error = bool(message.error) and bytes(message.error) != b"null"
        if not (message.id and (message.result or is_error)):
            self._garbage(frame, None)
        waiting = self._pending.pop(bytes(message.id), None)
        if waiting is None:
            log.debug("an answer to no open request: %s", bytes(message.id)[:80])
            return
        answer, on_reply = waiting
        try:
            if is_error or not message.result:
                raise _remote_error(message.error)
            if on_reply is not None:
                on_reply(message.result)
        except Exception as error:  # noqa: BLE001  it belongs to the caller, not to the reader
            if not answer.done():
                answer.set_exception(error)
            return
        if not answer.done():
            answer.set_result(message.result)

    def _serve(self, method: str, params: Raw, request_id: bytes) -> None:
        if self._closed:
            return
        if self._closing:
            self._reply_error(request_id, CLOSING, "The connection is closing")
        elif request_id in self._in_flight:
            self._reply_error(request_id, INVALID_REQUEST, "This request id is in use")
        elif len(self._in_flight) >= MAX_IN_FLIGHT:
            self._reply_error(request_id, CLOSING, f"More than {MAX_IN_FLIGHT} requests at once")
        else:
            task = asyncio.get_running_loop().create_task(self._run(method, params, request_id))
            task.add_done_callback(self._tasks.discard)
            self._tasks.add(task)
            self._in_flight[request_id] = task

    async def _run(self, method: str, params: Raw, request_id: bytes) -> None:
        try:
            result = await self._on_request(method, params, request_id)
            body = b'"result":' + _encode(result)
        except asyncio.CancelledError:
            # By `aclose`, which answers; by `cancel_theirs`, which took it; or by something inside.
            if not self._closing:
                self._settle(request_id, _error_body(RemoteError(INTERNAL_ERROR, "Internal error"), method))
            raise
        except Exception as error:  # noqa: BLE001  the one boundary from exception to wire error
            body = _error_body(error, method)
        self._settle(request_id, body)

    def _settle(self, request_id: bytes, body: bytes) -> None:
        # A cancelled handler may end after its id was used anew: only the task that holds it answers.
        if self._in_flight.get(request_id) is asyncio.current_task():
            del self._in_flight[request_id]
            self._reply(request_id, body)

    def cancel_theirs(self, request_id: bytes, answer: RemoteError | None = None) -> bool:
        """The other end gave up one of its requests: stop serving it, answer only if told to."""
        task = self._in_flight.pop(request_id, None)
        if task is None:
            return False
        task.cancel()
        if answer is not None:
            self._reply(request_id, _error_body(answer, "a cancelled request"))
        return True

    def _reply_error(self, request_id: bytes, code: int, message: str) -> None:
        self._reply(request_id, b'"error":' + _encode({"code": code, "message": message}))

    def _reply(self, request_id: bytes, body: bytes) -> None:
        if not self._closed:
            self._post(self._head + b'"id":' + request_id + b"," + body + b"}\n")

    def _garbage(self, frame: bytes, problem: Exception | None) -> None:
        if frame.isspace():
            return
        is_json = problem is None or isinstance(problem, msgspec.ValidationError)
        request_id = _claimed_id(frame) if isinstance(problem, msgspec.ValidationError) else None
        if self._on_garbage is not None:
            self._tell_garbage(frame, str(problem or "neither request nor answer"))
        if request_id is not None or self._on_garbage is None:
            code, text = (INVALID_REQUEST, "a JSON-RPC message") if is_json else (PARSE_ERROR, "JSON")
            self._reply_error(request_id or b"null", code, f"This is not {text}")

    def _report_oversize(self, size: int) -> None:
        log.warning("a message of at least %d bytes was skipped", size)
        if self._on_garbage is not None:
            self._tell_garbage(b"", f"a message of at least {size} bytes was skipped")
        else:
            self._reply_error(b"null", INVALID_REQUEST, "The message is too long and was skipped")

    def _tell_garbage(self, frame: bytes, problem: str) -> None:
        assert self._on_garbage
        try:
            self._on_garbage(frame, problem)
        except Exception:
            log.exception("handling garbage failed")

    # ── end ────────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """Answer what is open on both sides, hand over what is unsent, accept nothing more.

        May be called by a handler: that one is answered too, and goes on.
        """
        self._closing = True
        tasks = {task for task in self._tasks if task is not asyncio.current_task()}
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_S)
        finally:
            # Handlers that would not end, and those that were cancelled before they began.
            for request_id in self._in_flight:
                self._reply_error(request_id, CLOSING, "The connection is closing")
            self._in_flight.clear()
            self._shut(WireClosed("The connection was closed"))
            self._flush()

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


def _error_body(error: Exception, method: str) -> bytes:
    try:
        return b'"error":' + _encode(wire_error(error, method))
    except _UNSPEAKABLE:
        log.exception("the error of %s cannot be put into JSON", method)
        return b'"error":' + _encode({"code": INTERNAL_ERROR, "message": "Internal error"})


def _remote_error(raw: Raw) -> RemoteError:
    try:
        body = _decode_error(raw)
    except _UNREADABLE:
        body = _ErrorBody(message="The other end sent an answer that is none")
    return RemoteError(body.code, body.message, body.data)


def _claimed_id(frame: bytes) -> bytes | None:
    """The id of a malformed request. One without `method` may be an answer, and its id is ours."""
    try:
        claim = _decode_claim(frame)
    except _UNREADABLE:
        return None
    return bytes(claim.id) if claim.id and claim.method else None
