"""The HTTP server and connections that send half of a request, or nothing: time and room are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from laneway.doors.http import serving as limits_of_http
from laneway.doors.mcp.http_sessions import HttpTiming
from tests.doors.mcp.http_support import OTHER_TOKEN, TOKEN, Bench, Place, call, initialize, said, serving

HEAD = "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
ACCEPT = "accept: application/json, text/event-stream\r\n"
BEARER = f"authorization: Bearer {TOKEN}\r\n"
WRONG = "authorization: Bearer wrong-token-0123456789\r\n"


class Raw:
    """A connection by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.reader = reader
        self.writer = writer
        self._port = port

    def send(self, text: str) -> None:
        self.writer.write(text.replace("{port}", str(self._port)).encode())

    async def status(self) -> int:
        """Of the next response, which is read to its end."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"content-length: "))
        await self.reader.readexactly(length)
        return int(head.split()[1])

    async def is_broken_off(self) -> bool:
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True

    async def arrived(self, place: Place) -> None:
        """Until the server has read what was sent: it serves one connection after the other."""
        await place.post(initialize())
        await place.post(initialize())


@asynccontextmanager
async def raw(place: Place) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    try:
        yield Raw(reader, writer, place.port)
    finally:
        writer.transport.abort()


@pytest.mark.parametrize(
    "sent",
    ["", "POST /m", HEAD, HEAD + BEARER, HEAD + "content-length: 9\r\n" + WRONG + "\r\n{"],
    ids=["nothing", "half a line", "half of the headers", "a token without an end", "a wrong token"],
)
async def test_who_shows_no_token_in_time_is_dropped(sent: str) -> None:
    """Whatever it sent meanwhile; a refusal of its token is answered, and buys no further time."""
    async with serving(Bench().server) as place, raw(place) as idle:
        idle.send(sent)
        if WRONG in sent:
            assert await idle.status() == 401
        await idle.arrived(place)
        place.clock.advance(limits_of_http.UNPROVEN_S)
        assert await idle.is_broken_off()


async def test_a_client_with_the_token_has_a_deadline_for_the_next_requests_headers() -> None:
    """It begins with their first byte, not with the connection."""
    async with serving(Bench().server) as place, raw(place) as client:
        body = "{}"
        client.send(f"{HEAD}{ACCEPT}{BEARER}content-length: {len(body)}\r\n\r\n{body}")
        assert await client.status() == 400
        place.clock.advance(100)  # an idle connection is uvicorn's to end, by another clock
        client.send(HEAD)
        await client.arrived(place)
        place.clock.advance(limits_of_http.HEAD_S - 1)
        client.send(f"{ACCEPT}{BEARER}content-length: {len(body)}\r\n\r\n{body}")
        assert await client.status() == 400
        client.send(HEAD)
        await client.arrived(place)
        place.clock.advance(limits_of_http.HEAD_S)
        assert await client.is_broken_off()


async def test_a_body_that_goes_on_after_its_answer_has_a_deadline() -> None:
    """A request that is too large is answered at once; what still comes of it is not read for ever."""
    timing = HttpTiming(body_s=30)
    async with serving(Bench().server, timing=timing) as place, raw(place) as client:
        client.send(f"{HEAD}{ACCEPT}{BEARER}content-length: 99999999\r\n\r\n")
        assert await client.status() == 413
        for _ in range(3):
            client.send("x")
            await client.arrived(place)
            place.clock.advance(10)
        place.clock.advance(limits_of_http.LATE_BODY_S)
        assert await client.is_broken_off()


async def test_a_call_that_takes_its_time_is_not_held_to_a_clients_deadlines() -> None:
    """Once a request is there, it is ours to end."""
    bench = Bench()
    async with serving(bench.server) as place:
        session = await place.shake_hands()
        waiting = asyncio.ensure_future(place.post(call("wait"), session))
        await bench.started.wait()
        place.clock.advance(10 * limits_of_http.UNPROVEN_S)
        bench.release.set()
        assert said((await waiting).json()) == "released"


@pytest.mark.parametrize("sent", ["", HEAD])
async def test_a_crowd_without_a_token_does_not_keep_out_who_has_one(sent: str) -> None:
    """The oldest of them make room. Who has a session keeps it, and its open stream."""
    async with serving(Bench().server, max_unproven=8) as place, AsyncExitStack() as stack:
        session = await place.shake_hands()
        async with place.streamed(None, session, method="GET"):
            crowd = [await stack.enter_async_context(raw(place)) for _ in range(24)]
            for each in crowd:
                each.send(sent)
            async with asyncio.timeout(20):
                assert all([await each.is_broken_off() for each in crowd[:16]])
            assert said((await place.post(call("echo"), session)).json()) == "{}"
            async with raw(place) as newcomer:
                newcomer.send(f"{HEAD}{ACCEPT}{BEARER}content-length: 2\r\n\r\n{{}}")
                assert await newcomer.status() == 400


async def test_those_with_a_token_are_bounded_and_told_so() -> None:
    """By a status that means: come again. The room of one who leaves is free."""
    async with serving(Bench().server, max_connections=2) as place, AsyncExitStack() as stack:
        request = f"{HEAD}{ACCEPT}{BEARER.replace(TOKEN, OTHER_TOKEN)}content-length: 2\r\n\r\n{{}}"
        statuses = []
        for _ in range(3):
            client = await stack.enter_async_context(raw(place))
            client.send(request)
            statuses.append(await client.status())
        assert statuses == [400, 400, 503]
        await stack.aclose()
        async with asyncio.timeout(20):
            status = 503
            while status == 503:  # until the server has heard that they left
                async with raw(place) as client:
                    client.send(request)
                    status = await client.status()
        assert status == 400
