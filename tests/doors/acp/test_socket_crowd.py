"""The WebSocket server and connections that never finish their handshake: time and room are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import connect

from laneway.doors.acp.handshake import Greeting
from laneway.doors.acp.socket import UNPROVEN_S, serve_socket
from laneway.testing.clock import HandClock

TOKEN = "alpha-token-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HALF = f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"


class Place:
    def __init__(self, url: str, clock: HandClock, stop: asyncio.Event) -> None:
        self.url = url
        self.clock = clock
        self.stop = stop

    @asynccontextmanager
    async def idle(self, sent: str = "") -> AsyncIterator[asyncio.StreamReader]:
        """A connection that sends this and nothing more."""
        port = int(self.url.rpartition(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent.encode())
        try:
            yield reader
        finally:
            writer.transport.abort()

    async def is_served(self) -> bool:
        async with connect(self.url, additional_headers=BEARER) as client:
            await client.send('{"jsonrpc":"2.0","id":1,"method":"session/list"}')
            return "`initialize` first" in str(await client.recv())


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[Place]:
    async def engage(client: Any, peer: Any) -> Any:
        raise AssertionError("nobody says initialize here")

    stop, clock = asyncio.Event(), HandClock()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(
            serve_socket(
                Greeting("1", (), {}),
                engage,
                host="127.0.0.1",
                port=0,
                tokens=[TOKEN],
                stop=stop,
                on_ready=ready.set_result,
                clock=clock,
                **limits,
            )
        )
        try:
            yield Place(await ready, clock, stop)
        finally:
            stop.set()


async def is_broken_off(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent", ["", HALF])
async def test_a_handshake_that_does_not_come_is_not_waited_for(sent: str) -> None:
    """Who finished its own stays."""
    async with serving() as place, connect(place.url, additional_headers=BEARER) as client:
        async with place.idle(sent) as reader:
            assert await place.is_served()
            place.clock.advance(UNPROVEN_S)
            assert await is_broken_off(reader)
        await (await client.ping())


@pytest.mark.parametrize("sent", ["", HALF])
async def test_a_crowd_without_a_handshake_keeps_out_nobody(sent: str) -> None:
    """The oldest make room, at once."""
    async with serving(max_unproven=8) as place, AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(place.idle(sent)) for _ in range(24)]
        assert all([await is_broken_off(reader) for reader in crowd[:16]])
        assert await place.is_served()


async def test_the_end_does_not_wait_for_handshakes() -> None:
    """Neither for those that stand nor by the clock, which stands still here."""
    async with serving() as place, AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(place.idle(sent)) for sent in ("", HALF)]
        assert await place.is_served()
        place.stop.set()
        assert all([await is_broken_off(reader) for reader in idle])
