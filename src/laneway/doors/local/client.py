"""Client of the local server: how a terminal command reaches a serving process."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from laneway.base.errors import RemoteError, WireBroken, WireError
from laneway.wire.messages import METHOD_NOT_FOUND
from laneway.wire.peer import Peer, Raw

T = TypeVar("T")

AGAIN_S = 0.02
"""Between two attempts to connect to a process whose queue of connections is full."""

Tell = Callable[[str, Raw], None]
"""Takes a notification's method and params. An `OSError` that it raises ends the connection."""


def ignore_notifications(method: str, params: Raw) -> None:
    pass


class LocalClient(asyncio.Protocol):
    """An open connection. `tell` is called on the reader: if it is slow, it slows only this process."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._problem: OSError | None = None
        self._peer: Peer
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._peer = Peer(self._transport.write, on_request=_refuse, on_notification=self._hear)

    def data_received(self, data: bytes) -> None:
        self._peer.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._peer.feed_eof()

    def _hear(self, method: str, params: Raw, frame: bytes) -> None:
        try:
            self._tell(method, params)
        except OSError as problem:  # the reader of our output has gone
            self._problem = problem
            self._transport.abort()

    async def call(self, method: str, params: Any = None, *, reply: type[T]) -> T:
        """The answer; `RemoteError` or `WireBroken` if there is none."""
        try:
            return await self._peer.call(method, params, reply=reply)
        except WireError:
            if self._problem is not None:
                raise self._problem from None
            raise

    async def aclose(self) -> None:
        await self._peer.aclose()
        self._transport.abort()


async def _refuse(method: str, params: Raw, request_id: bytes) -> Any:
    raise RemoteError(METHOD_NOT_FOUND, "This client answers no requests.")


@asynccontextmanager
async def connect(path: Path, tell: Tell = ignore_notifications) -> AsyncIterator[LocalClient]:
    """A connection to the socket of a serving process; `WireBroken` if nobody listens on it."""
    loop = asyncio.get_running_loop()
    try:
        sock = await _connected(path)
        _, client = await loop.create_unix_connection(lambda: LocalClient(tell), sock=sock)
    except OSError as problem:
        raise WireBroken(f"Nobody answers at {path}") from problem
    try:
        yield client
    finally:
        await client.aclose()


async def _connected(path: Path) -> socket.socket:
    """Connect, waiting while the queue is full: asyncio would take `EAGAIN` for being connected."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        while True:
            try:
                sock.connect(os.fspath(path))
                return sock
            except BlockingIOError:
                await asyncio.sleep(AGAIN_S)
    except BaseException:
        sock.close()
        raise
