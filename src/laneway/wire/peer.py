"""A JSON-RPC peer, client and server at once, over any byte pipe: for app-server, MCP and ACP.

Sans-IO: bytes come in through `feed`, bytes go out through `send`. Owns our own requests (`pending`)
and the reader; `Service` owns the other end's requests, `Outbox` the outgoing messages,
`laneway.wire.messages` the message format. Knows no method by name.

The reader awaits nothing: notifications are passed on in receive order by a plain call; each
request gets a task of its own. Whatever comes, `feed` does not raise, every request with an id gets
exactly one answer, and memory is bounded.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

from laneway.base.errors import RemoteError, WireBroken, WireClosed, WireError
from laneway.wire import batch as batches
from laneway.wire.batch import Batch
from laneway.wire.frames import MAX_FRAME_BYTES, LineDecoder
from laneway.wire.headers import MixedDecoder
from laneway.wire.messages import (
    CLOSING,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_A_MESSAGE,
    PARSE_ERROR,
    SHOWN_CHARS,
    UNREADABLE,
    Envelope,
    Fault,
    Raw,
    decode_envelope,
    encode,
    fault_of,
    is_utf8,
    mend,
    remote_error,
)
from laneway.wire.outbox import MAX_BACKLOG_BYTES, Outbox, do_nothing, no_backlog
from laneway.wire.service import MAX_IN_FLIGHT, OnRequest, Service

__all__ = ["MAX_BACKLOG_BYTES", "MAX_IN_FLIGHT", "METHOD_NOT_FOUND", "Peer", "Raw"]

log = logging.getLogger(__name__)

T = TypeVar("T")

OnNotification = Callable[[str, Raw, bytes], None]
"""method, params, the whole frame. Called on the reader: it must not block or await."""
Notice = Callable[[bytes], tuple[str, Any]]
"""From the id of a call that we cancelled to the notification that says so."""


class Peer:
    """Sends and serves JSON-RPC requests on one connection."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        *,
        on_request: OnRequest,
        on_notification: OnNotification,
        backlog_bytes: Callable[[], int] = no_backlog,
        pause_reading: Callable[[], None] = do_nothing,
        resume_reading: Callable[[], None] = do_nothing,
        on_garbage: Callable[[bytes, str], None] | None = None,
        cancel_notice: Notice | None = None,
        with_header: bool = True,
        with_lengths: bool = False,
        with_batches: bool = True,
        max_bytes: int = MAX_FRAME_BYTES,
        refusal: int = CLOSING,
    ) -> None:
        """`with_lengths`: read messages with a Content-Length, too, and answer in the same framing.

        `refusal`: the error code of refused requests, for protocols that use our default for something else.
        For `pause_reading` and `resume_reading` see `laneway.wire.outbox`.
        """
        self._outbox = Outbox(
            send, backlog_bytes=backlog_bytes, pause_reading=pause_reading, resume_reading=resume_reading
        )
        self._service = Service(on_request, self._reply, refusal)
        self._on_notification = on_notification
        self._on_garbage = on_garbage
        self._cancel_notice = cancel_notice
        # app-server omits "jsonrpc"; MCP and ACP demand it. Both are read.
        self._head = b'{"jsonrpc":"2.0",' if with_header else b"{"
        self._decoder = (
            MixedDecoder(max_bytes, self._report_oversize, self._report_headers)
            if with_lengths
            else LineDecoder(max_bytes, self._report_oversize)
        )
        self._ids = itertools.count(1)
        self._pending: dict[bytes, tuple[asyncio.Future[Raw], Callable[[Raw], None] | None]] = {}
        self._open_batches = 0
        self._closed: WireError | None = None
        self.with_batches = with_batches
        """May change while connected: some protocols negotiate it in their handshake."""
        self.dropped_notifications = 0

    # ── out ────────────────────────────────────────────────────────────────

    @overload
    async def call(
        self,
        method: str,
        params: Any = ...,
        *,
        on_reply: Callable[[Raw], None] | None = ...,
        on_sent: Callable[[bytes], None] | None = ...,
    ) -> Any: ...

    @overload
    async def call(
        self,
        method: str,
        params: Any = ...,
        *,
        reply: type[T],
        on_reply: Callable[[Raw], None] | None = ...,
        on_sent: Callable[[bytes], None] | None = ...,
    ) -> T: ...

    async def call(
        self,
        method: str,
        params: Any = None,
        *,
        reply: Any = Any,
        on_reply: Callable[[Raw], None] | None = None,
        on_sent: Callable[[bytes], None] | None = None,
    ) -> Any:
        """Send a request and return its result; raise `RemoteError`, `WireClosed` or `WireBroken`.

        `on_reply` gets a successful result on the reader, before any later message is read;
        `on_sent` gets the id, for protocols whose other messages name it.
        """
        if self._closed:
            # Raised many times: without this, each time would add a traceback with its frames.
            raise self._closed.with_traceback(None)
        request_id = b"%d" % next(self._ids)
        body = _params(params)
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = (answer, on_reply)
        if on_sent is not None:
            on_sent(request_id)
        self._post(self._head + b'"id":' + request_id + b',"method":' + encode(method) + body + b"}")
        try:
            result = await answer
        except asyncio.CancelledError:
            if self._pending.pop(request_id, None) is not None and self._cancel_notice and not self._closed:
                # Never dropped: the other end would go on with work that nobody waits for.
                self.notify(*self._cancel_notice(request_id), may_drop=False)
            raise
        try:
            return msgspec.json.decode(result, type=reply)
        except UNREADABLE as problem:
            raise RemoteError(INTERNAL_ERROR, f"The answer to {method} cannot be read") from problem

    def expect(self, request_id: bytes) -> asyncio.Future[Raw]:
        """The result of a request that was sent before there was a peer; call it before the first `feed`."""
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may never be awaited
        self._pending[request_id] = (answer, None)
        return answer

    def notify(self, method: str, params: Any = None, *, may_drop: bool = True) -> bool:
        """Send a notification, or drop and count it if the other end has stopped reading."""
        if self._closed:
            return False
        if may_drop and self._outbox.is_behind:
            self.dropped_notifications += 1
            return False
        self._post(self._head + b'"method":' + encode(method) + _params(params) + b"}")
        return True

    def before_write(self, gather: Callable[[], None]) -> None:
        """Call this once, right before the next write: what it sends leaves with that."""
        if not self._closed:
            self._outbox.before_write(gather)

    @property
    def is_behind(self) -> bool:
        """Whether the other end has stopped reading."""
        return self._outbox.is_behind

    async def wait_writable(self) -> None:
        """Wait until the other end has read most of what we sent, or is gone."""
        if not self._closed:
            await self._outbox.wait_low()

    def drained(self) -> None:
        """The transport's write buffer has run low: if we had stopped reading, we go on."""
        self._outbox.drained()

    def _post(self, message: bytes) -> None:
        self._outbox.post(self._decoder.wrap(message))

    # ── in ─────────────────────────────────────────────────────────────────

    def feed(self, data: bytes) -> None:
        """Take bytes from the other end. Never raises, whatever they are."""
        notify = self._on_notification
        for frame in self._decoder.feed(data):
            try:
                message = decode_envelope(frame)
            except UNREADABLE:
                self._take_odd_frame(frame)
                continue
            if message.method is None:
                self._resolve(message, frame, None)
            elif message.id:
                self._serve(message, frame, None)
            else:
                try:
                    notify(message.method, message.params, frame)
                except Exception:  # noqa: BLE001  a listener's failure is not the reader's
                    self._notification_failed(message.method, frame, None)

    def feed_eof(self, error: WireError | None = None) -> None:
        """The other end is gone: fail everything that waits for it."""
        self._shut(error or WireBroken("The connection ended"))
        self._service.abandon()

    def _take_odd_frame(self, frame: bytes) -> None:
        """Handle a frame that is no single message: white space, a batch, half an emoji, or nonsense."""
        if frame.isspace():
            return
        mended = mend(frame)
        if not batches.is_array(frame):
            self._take(mended, None)
        elif not self.with_batches:
            self._reject(frame, batches.REFUSED, None)
        else:
            self._take_batch(mended)

    def _take_batch(self, frame: bytes) -> None:
        messages = batches.elements(frame)
        if isinstance(messages, Fault):
            self._reject(frame, messages, None)
        elif self._open_batches >= batches.MAX_OPEN_BATCHES:
            self._reject(frame, batches.TOO_MANY, None)
        else:
            batch = Batch(self._end_batch)
            self._open_batches += 1
            for message in messages:
                self._take(message, batch)
            batch.answer(None)

    def _end_batch(self, answers: list[bytes]) -> None:
        self._open_batches -= 1
        if answers and not self._closed:
            self._post(b"[" + b",".join(answers) + b"]")

    def _take(self, frame: bytes, batch: Batch | None) -> None:
        """One message outside the hot path."""
        try:
            message = decode_envelope(frame)
        except UNREADABLE:
            self._reject(frame, fault_of(frame), batch)
            return
        if message.method is None:
            self._resolve(message, frame, batch)
        elif message.id:
            self._serve(message, frame, batch)
        else:
            try:
                self._on_notification(message.method, message.params, frame)
            except Exception:  # noqa: BLE001  as in `feed`
                self._notification_failed(message.method, frame, batch)

    def _notification_failed(self, method: str, frame: bytes, batch: Batch | None) -> None:
        """A notification handler failed. Only now is the frame checked for UTF-8, because that costs time."""
        if is_utf8(frame):
            log.exception("handling notification %s failed", method[:SHOWN_CHARS])
        else:
            self._reject(frame, fault_of(frame), batch)

    def _resolve(self, message: Envelope, frame: bytes, batch: Batch | None) -> None:
        is_error = bool(message.error) and bytes(message.error) != b"null"
        if not (message.id and (message.result or is_error)):
            self._reject(frame, NOT_A_MESSAGE, batch)
        waiting = self._pending.pop(bytes(message.id), None)
        if waiting is None:
            log.debug("an answer to no open request: %s", bytes(message.id)[:SHOWN_CHARS])
            return
        answer, on_reply = waiting
        try:
            if is_error or not message.result:
                raise remote_error(message.error)
            if on_reply is not None:
                on_reply(message.result)
        except Exception as error:  # noqa: BLE001  it belongs to the caller, not to the reader
            if not answer.done():
                answer.set_exception(error)
            return
        if not answer.done():
            answer.set_result(message.result)

    def _serve(self, message: Envelope, frame: bytes, batch: Batch | None) -> None:
        if self._closed:
            return
        if not is_utf8(frame):
            self._reject(frame, fault_of(frame), batch)
            return
        assert message.method is not None
        self._service.serve(message.method, message.params, bytes(message.id), size=len(frame), batch=batch)

    async def wait_served(self, timeout_s: float) -> None:
        """Wait until none of the other end's requests is being served, or the time is up."""
        await self._service.wait_idle(timeout_s)

    def cancel_theirs(self, request_id: bytes, answer: RemoteError | None = None) -> bool:
        """The other end cancelled one of its requests: stop serving it, and send `answer` if there is one."""
        return self._service.cancel(request_id, answer)

    def _reply(self, request_id: bytes, body: bytes, batch: Batch | None = None) -> None:
        if self._closed:
            return
        message = self._head + b'"id":' + request_id + b"," + body + b"}"
        if batch is None:
            self._post(message)
        else:
            batch.answer(message)

    def _reject(self, frame: bytes, fault: Fault, batch: Batch | None) -> None:
        if self._on_garbage is not None:
            self._report_garbage(frame, fault.text)
        if fault.request_id is not None or self._on_garbage is None:
            if batch is not None:
                batch.expect()
            self._reply_fault(fault, batch)

    def _reply_fault(self, fault: Fault, batch: Batch | None = None) -> None:
        body = b'"error":' + encode({"code": fault.code, "message": fault.text})
        self._reply(fault.request_id or b"null", body, batch)

    def _report_oversize(self, size: int) -> None:
        log.warning("a message of at least %d bytes was skipped", size)
        if self._on_garbage is not None:
            self._report_garbage(b"", f"a message of at least {size} bytes was skipped")
        else:
            self._reply_fault(Fault(INVALID_REQUEST, "The message is too long and was skipped"))

    def _report_headers(self, problem: str) -> None:
        if self._on_garbage is not None:
            self._report_garbage(b"", problem)
        else:
            self._reply_fault(Fault(PARSE_ERROR, problem))

    def _report_garbage(self, frame: bytes, problem: str) -> None:
        assert self._on_garbage
        try:
            self._on_garbage(frame, problem)
        except Exception:
            log.exception("handling garbage failed")

    # ── end ────────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """Answer all open requests of both sides, send what is unsent, accept nothing more.

        May be called by a handler: its request is answered, too, and the handler goes on.
        """
        try:
            await self._service.aclose()
        finally:
            self._shut(WireClosed("The connection was closed"))
            self._outbox.flush()

    def _shut(self, error: WireError) -> None:
        if self._closed is None:
            self._closed = error
        for answer, _ in self._pending.values():
            if not answer.done():
                answer.set_exception(error)
        self._pending.clear()
        self._outbox.give_up_waiting()


def _params(params: Any) -> bytes:
    encoded = b"" if params is None else encode(params)
    # An empty `Raw` stands for params that were not there.
    return b',"params":' + encoded if encoded else b""
