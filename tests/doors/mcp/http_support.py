"""A server for the tests of the HTTP door, with tools that do what a test says, and a plain client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from laneway.core.hub import Hub
from laneway.core.ports import Clock
from laneway.doors.mcp.dropin import DropIn
from laneway.doors.mcp.eras import CAPABILITIES_KEY, STATELESS_VERSION, VERSION_KEY
from laneway.doors.mcp.events import Silence
from laneway.doors.mcp.http import serve_http
from laneway.doors.mcp.http_sessions import HttpTiming
from laneway.doors.mcp.presets import SessionDefaults
from laneway.doors.mcp.server import Call, CallerChannel, McpServer, Offer
from laneway.testing.clock import HandClock

TOKEN = "alpha-token-0123456789"
OTHER_TOKEN = "other-token-0123456789"
DEADLINE_S = 30.0
LATEST = "2025-11-25"
BOTH = "application/json, text/event-stream"


class Bench:
    """Tools under a test's control."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.channel: CallerChannel
        self.refused_notices = 0
        names: dict[str, Callable[[Call, dict[str, Any]], Any]] = {
            "echo": self._echo,
            "who": self._who,
            "chatter": self._chatter,
            "wait": self._wait,
            "ask": self._ask,
            "flood": self._flood,
        }
        schema = {"type": "object"}
        offers = [Offer({"name": name, "inputSchema": schema}, handler) for name, handler in names.items()]
        self.server = McpServer({"name": "bench", "version": "1"}, offers)

    async def _echo(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        return _text(json.dumps(arguments, sort_keys=True))

    async def _who(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        return _text(call.principal)

    async def _chatter(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        for number in range(int(arguments.get("count", 3))):
            call.channel.notify("test/event", {"number": number})
        return _text("said")

    async def _wait(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        self.channel = call.channel
        if arguments.get("aloud"):
            call.channel.notify("test/event", {"number": 0})
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return _text("released")

    async def _ask(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        asked = {"message": "May I?", "requestedSchema": {"type": "object", "properties": {}}}
        return _text(json.dumps(await call.channel.call("elicitation/create", asked)))

    async def _flood(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """Speak until nobody listens."""
        for _ in range(4096):
            if not call.channel.notify("test/event", {"much": "x" * 16_000}):
                self.refused_notices += 1
                break
            await asyncio.sleep(0)
        self.started.set()
        return _text("flooded")


def dropin(hub: Hub, clock: Clock, folder: Path, **flags: Any) -> McpServer:
    """The two tools of the old server on a hub, with nothing said but their answers."""
    return DropIn(hub, clock, SessionDefaults(cwd=folder, base_dir=folder, **flags), Silence).server("1")


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def said(answer: Any) -> str:
    """The text of a tool's result."""
    return str(answer["result"]["content"][0]["text"])


class Place:
    """A server that runs, and a way to speak to it."""

    def __init__(self, url: str, clock: HandClock, web: httpx2.AsyncClient) -> None:
        self.url = url
        self.clock = clock
        self.web = web

    @property
    def port(self) -> int:
        return int(httpx2.URL(self.url).port or 0)

    def headers(self, session: str = "", token: str = TOKEN, **more: str) -> dict[str, str]:
        told = {"authorization": f"Bearer {token}", "accept": BOTH, "content-type": "application/json"}
        if session:
            told |= {"mcp-session-id": session, "mcp-protocol-version": LATEST}
        return {**told, **{name.replace("_", "-"): value for name, value in more.items()}}

    async def post(self, body: Any, session: str = "", **more: str) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.web.post(self.url, content=content, headers=self.headers(session, **more))

    async def shake_hands(self, token: str = TOKEN, version: str = LATEST) -> str:
        """A session's id."""
        answered = await self.post(initialize(version), token=token)
        assert answered.status_code == 200, answered.text
        assert answered.json()["result"]["protocolVersion"] == version
        session = answered.headers["mcp-session-id"]
        noticed = await self.post(
            {"jsonrpc": "2.0", "method": "notifications/initialized"}, session, token=token
        )
        assert noticed.status_code == 202
        return session

    async def stateless(
        self, name: str, arguments: dict[str, Any] | None = None, **more: str
    ) -> httpx2.Response:
        return await self.post(modern(name, arguments), **{**mirrors(name), **more})

    @asynccontextmanager
    async def streamed(
        self, body: Any, session: str = "", *, method: str = "POST", **more: str
    ) -> AsyncIterator[AsyncIterator[dict[str, str]]]:
        """The events of a response, as they come."""
        content = json.dumps(body).encode() if body is not None else None
        headers = self.headers(session, **more)
        async with self.web.stream(method, self.url, content=content, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"] == "text/event-stream"
            yield events(response)


async def events(response: httpx2.Response) -> AsyncIterator[dict[str, str]]:
    event: dict[str, str] = {}
    async for line in response.aiter_lines():
        if not line:
            if event:
                yield event
            event = {}
        elif not line.startswith(":"):
            key, _, value = line.partition(": ")
            event[key] = value


async def messages(stream: AsyncIterator[dict[str, str]]) -> list[Any]:
    """What the rest of a stream says."""
    return [json.loads(event["data"]) async for event in stream if event.get("data")]


async def next_message(stream: AsyncIterator[dict[str, str]]) -> tuple[str, Any]:
    """The next event with a message in it: its id, and the message."""
    async for event in stream:
        if event.get("data"):
            return event.get("id", ""), json.loads(event["data"])
    raise AssertionError("the stream ended")


def initialize(version: str = LATEST) -> dict[str, Any]:
    params = {
        "protocolVersion": version,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def call(name: str, arguments: dict[str, Any] | None = None, request_id: int | str = 1) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments or {}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def modern(name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    """A call of the stateless era."""
    said_with = call(name, arguments)
    said_with["params"]["_meta"] = {VERSION_KEY: STATELESS_VERSION, CAPABILITIES_KEY: {}}
    return said_with


def mirrors(name: str) -> dict[str, str]:
    return {"mcp_protocol_version": STATELESS_VERSION, "mcp_method": "tools/call", "mcp_name": name}


@asynccontextmanager
async def serving(
    server: McpServer,
    *,
    clock: Clock | None = None,
    timing: HttpTiming = HttpTiming(),  # noqa: B008  frozen
    deadline_s: float = DEADLINE_S,
    **more: Any,
) -> AsyncIterator[Place]:
    """The server on a free port, until the end of the block."""
    stop = asyncio.Event()
    hand = HandClock()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(deadline_s), asyncio.TaskGroup() as group:
        group.create_task(
            serve_http(
                server,
                host="127.0.0.1",
                port=0,
                tokens=(TOKEN, OTHER_TOKEN),
                stop=stop,
                on_ready=ready.set_result,
                clock=clock or hand,
                timing=timing,
                **more,
            )
        )
        url = await ready
        async with httpx2.AsyncClient(timeout=DEADLINE_S) as web:
            try:
                yield Place(url, hand, web)
            finally:
                stop.set()
