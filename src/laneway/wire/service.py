"""Serves the other end's requests: one task each, bounded, with exactly one answer.

Owns their ids, their cancellation and the boundary where a handler's exception becomes an answer.
Only `Peer` creates one; it frames and sends the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from laneway.base.errors import RemoteError
from laneway.wire.batch import Batch
from laneway.wire.frames import MAX_FRAME_BYTES
from laneway.wire.messages import CLOSING, INTERNAL_ERROR, INVALID_REQUEST, Raw, encode, error_body

MAX_IN_FLIGHT = 1024
"""Requests of the other end served at once; the next one is refused, not queued."""
MAX_IN_FLIGHT_BYTES = 4 * MAX_FRAME_BYTES
"""Of those requests together, since each stays in memory while it is served. One alone is always served."""
CLOSE_S = 2.0
"""For handlers to end once they are cancelled; after that their requests are refused."""

OnRequest = Callable[[str, Raw, bytes], Awaitable[Any]]
"""method, params, the request's id as received; returns the result or raises."""
Reply = Callable[[bytes, bytes, Batch | None], None]
"""The id, the rest of the answer, and the batch that it belongs to."""


class _Serving(NamedTuple):
    task: asyncio.Task[None]
    size: int
    batch: Batch | None


class Service:
    """The requests of the other end that are in progress."""

    def __init__(self, on_request: OnRequest, reply: Reply, refusal: int = CLOSING) -> None:
        """`refusal` is the error code of refused requests: there are too many, or we are closing."""
        self._on_request = on_request
        self._reply = reply
        self._refusal = refusal
        self._in_flight: dict[bytes, _Serving] = {}
        self._in_flight_bytes = 0
        # Includes tasks that `cancel` has cancelled and that have not ended yet.
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def serve(self, method: str, params: Raw, request_id: bytes, *, size: int, batch: Batch | None) -> None:
        """Answer a request of `size` bytes, now or when its handler ends."""
        if batch is not None:
            batch.expect()
        if self._is_closing:
            self._refuse(request_id, self._refusal, "The connection is closing", batch)
        elif request_id in self._in_flight:
            self._refuse(request_id, INVALID_REQUEST, "This request id is in use", batch)
        elif len(self._in_flight) >= MAX_IN_FLIGHT:
            self._refuse(request_id, self._refusal, f"More than {MAX_IN_FLIGHT} requests at once", batch)
        elif self._in_flight and self._in_flight_bytes + size > MAX_IN_FLIGHT_BYTES:
            self._refuse(
                request_id, self._refusal, f"More than {MAX_IN_FLIGHT_BYTES} bytes of requests at once", batch
            )
        else:
            task = asyncio.get_running_loop().create_task(self._run(method, params, request_id))
            task.add_done_callback(self._tasks.discard)
            self._tasks.add(task)
            self._in_flight[request_id] = _Serving(task, size, batch)
            self._in_flight_bytes += size

    async def _run(self, method: str, params: Raw, request_id: bytes) -> None:
        try:
            result = await self._on_request(method, params, request_id)
            # A handler may pass on missing params: an empty `Raw` is no JSON.
            body = b'"result":' + (encode(result) or b"null")
        except asyncio.CancelledError:
            # By `aclose` or `cancel`, which answer themselves; or by something inside the handler.
            if not self._is_closing:
                self._settle(request_id, error_body(RemoteError(INTERNAL_ERROR, "Internal error"), method))
            raise
        except Exception as error:  # noqa: BLE001  the one boundary from exception to wire error
            body = error_body(error, method)
        self._settle(request_id, body)

    def _settle(self, request_id: bytes, body: bytes) -> None:
        # A cancelled handler may end after its id was reused: only the task that owns the id answers.
        serving = self._in_flight.get(request_id)
        if serving is not None and serving.task is asyncio.current_task():
            self._take_out(request_id)
            self._reply(request_id, body, serving.batch)

    def cancel(self, request_id: bytes, answer: RemoteError | None) -> bool:
        serving = self._take_out(request_id)
        if serving is None:
            return False
        serving.task.cancel()
        if answer is not None:
            self._reply(request_id, error_body(answer, "a cancelled request"), serving.batch)
        elif serving.batch is not None:
            serving.batch.answer(None)
        return True

    def _take_out(self, request_id: bytes) -> _Serving | None:
        serving = self._in_flight.pop(request_id, None)
        if serving is not None:
            self._in_flight_bytes -= serving.size
        return serving

    def _refuse(self, request_id: bytes, code: int, message: str, batch: Batch | None) -> None:
        self._reply(request_id, error_body(RemoteError(code, message), "a refused request"), batch)

    async def wait_idle(self, timeout_s: float) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)

    def abandon(self) -> None:
        """Cancel all handlers without answering: the other end is gone."""
        self._in_flight.clear()
        self._in_flight_bytes = 0
        for task in self._tasks:
            task.cancel()

    async def aclose(self) -> None:
        """Answer all open requests and refuse new ones. May be called by a handler."""
        self._is_closing = True
        tasks = {task for task in self._tasks if task is not asyncio.current_task()}
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_S)
        finally:
            # Handlers that did not end, and those that were cancelled before they began.
            for request_id in list(self._in_flight):
                serving = self._take_out(request_id)
                assert serving is not None
                self._refuse(request_id, self._refusal, "The connection is closing", serving.batch)
