"""One HTTP request and its response, over ASGI: reads the body within bounds, writes the answer.

Knows no protocol on top of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

from laneway.doors.gate import AccessDenied, Headers

EXTENSIONS, PROVE = "extensions", "laneway.prove"
"""Where in the scope `connection` puts the function to call once the token is verified."""
MAX_BODY_BYTES = 4 * 1024 * 1024
"""Of one request: the limit of the official SDK's server, which clients know."""

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class LeavingReader(Protocol):
    """Reads a stream for a client, until that hangs up."""

    def leave(self) -> None: ...


class HttpExchange:
    """One HTTP request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope.get("query_string", b"")
        self.headers = Headers(scope["headers"])
        self._prove: Callable[[], bool] = scope.get(EXTENSIONS, {}).get(PROVE, lambda: True)
        self._receive = receive
        self._send = send

    def prove(self) -> None:
        """The token is verified: the connection may stay, if there is room."""
        if not self._prove():
            raise AccessDenied(503, "Too many connections are open now", headers=(("retry-after", "5"),))

    async def body(self, timeout_s: float, max_bytes: int = MAX_BODY_BYTES) -> bytes:
        body = bytearray()
        async for piece in self.pieces(timeout_s, max_bytes):
            body += piece
        return bytes(body)

    async def pieces(self, timeout_s: float, max_bytes: int) -> AsyncIterator[bytes]:
        """The body as it arrives. `timeout_s` is for all of it."""
        length = self.headers.get("content-length") or "0"
        if not length.isdigit() or len(length) > 18 or int(length) > max_bytes:
            raise _too_large(max_bytes)
        received = 0
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await self._receive()
            except TimeoutError as late:
                raise AccessDenied(
                    408, "The body did not arrive", headers=(("connection", "close"),)
                ) from late
            if message["type"] == "http.disconnect":
                raise AccessDenied(400, "The request ended before its body")
            piece = message.get("body", b"")
            received += len(piece)
            if received > max_bytes:
                raise _too_large(max_bytes)
            yield piece
            if not message.get("more_body", False):
                return

    @contextmanager
    def watched(self, reader: LeavingReader) -> Iterator[None]:
        """Within this context the reader is told when the client hangs up."""

        async def watch() -> None:
            while (await self._receive())["type"] != "http.disconnect":
                pass
            reader.leave()

        watching = asyncio.get_running_loop().create_task(watch())
        try:
            yield
        finally:
            watching.cancel()

    async def answer(self, status: int, body: bytes = b"", *headers: tuple[str, str]) -> None:
        await self.begin(status, ("content-length", str(len(body))), *headers)
        await self.write(body, more=False)

    async def begin(self, status: int, *headers: tuple[str, str]) -> None:
        raw = [(name.encode(), value.encode()) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, body: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _too_large(max_bytes: int) -> AccessDenied:
    # The connection stays open: a client that is still sending would not see this answer otherwise.
    return AccessDenied(413, f"A request has at most {max_bytes} bytes")
