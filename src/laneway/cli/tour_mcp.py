"""The tour's MCP client: talks to `laneway mcp` as Claude would."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from laneway import __version__
from laneway.base.plain import plain
from laneway.cli.rpc_program import RpcProgram
from laneway.wire.peer import Raw

Note = Callable[[str], None]


class DemoClient:
    """An MCP client that accepts every question, and counts events."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self.events = 0
        self.question_agents: list[str] = []
        self._updated: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._server = RpcProgram("server", self._on_request, self._on_notification)
        self._peer = self._server.peer

    async def open(self, *flags: str) -> None:
        await self._server.open([sys.executable, "-m", "laneway", "mcp", "--rehearse", *flags])
        about = {"name": "laneway-tour", "version": __version__}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": about}
        await self._peer.call("initialize", hello)
        self._peer.notify("notifications/initialized")

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; returns its structured content."""
        self._note(f"{tool} {msgspec.json.encode(arguments).decode()}")
        result: dict[str, Any] = await self._peer.call("tools/call", {"name": tool, "arguments": arguments})
        content: dict[str, Any] = result.get("structuredContent", {})
        return content

    async def subscribe(self, uri: str) -> None:
        self._note(f"resources/subscribe {uri}")
        await self._peer.call("resources/subscribe", {"uri": uri})

    async def wait_updated(self, uri: str) -> None:
        """Wait until the server has reported a change of this resource, now or earlier."""
        await self._updated[uri].wait()
        self._note(f"notifications/resources/updated {uri}")

    async def aclose(self) -> None:
        await self._server.aclose()

    def _on_notification(self, method: str, params: Raw, frame: bytes) -> None:
        self.events += method == "codex/event"
        if method == "notifications/resources/updated":
            self._updated[msgspec.json.decode(params)["uri"]].set()

    async def _on_request(self, method: str, params: Raw, request_id: bytes) -> Any:
        request = msgspec.json.decode(params)
        self.question_agents.append(str(request.get("agent_id")))
        self._note(f"? {plain(str(request.get('message')))} — answered: accept")
        return {"action": "accept"}


@asynccontextmanager
async def demo_client(note: Note, *flags: str) -> AsyncIterator[DemoClient]:
    client = DemoClient(note)
    try:
        await client.open(*flags)
        yield client
    finally:
        await client.aclose()
