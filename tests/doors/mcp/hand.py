"""MCP clients of a server on a hand-driven engine, without processes: what is asked waits for the test."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.base.errors import WireBroken
from laneway.doors.mcp.admin_tools import AdminTools
from laneway.doors.mcp.events import Silence
from laneway.doors.mcp.names import AGENTS
from laneway.doors.mcp.offers import offers
from laneway.doors.mcp.presets import SessionDefaults
from laneway.doors.mcp.server import Connection, McpServer
from laneway.doors.mcp.session_tools import SessionTools
from laneway.doors.mcp.unattended import Unattended
from laneway.testing.engine import HandThread
from laneway.wire.messages import Raw, encode
from tests.core.named.support import Stage, stage
from tests.core.support import until
from tests.doors.mcp.support import DEADLINE_S, ERA

Message = dict[str, Any]
FORMS: Message = {"elicitation": {}}


class Client:
    """One connection that asks, and is asked: `asked` waits for the test, which answers by the future."""

    def __init__(
        self, server: McpServer, principal: str, capabilities: Message, version: str = "2025-06-18"
    ) -> None:
        self.version = version
        self.asked: list[tuple[Message, asyncio.Future[Any]]] = []
        self.is_there = True
        self._server = server
        self._capabilities = capabilities
        self._connection = Connection(principal, self)
        self._ids = itertools.count(1)

    def notify(self, method: str, params: Any) -> bool:
        return self.is_there

    async def call(self, method: str, params: Any) -> Any:
        if not self.is_there:
            raise WireBroken("gone")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append((json.loads(encode(params)), answer))
        return await answer

    async def greet(self) -> None:
        await self.ask("initialize", protocolVersion=self.version, capabilities=self._capabilities)

    async def ask(self, method: str, /, **params: Any) -> Message:
        request_id = str(next(self._ids)).encode()
        raw = Raw(encode(params))
        answer = await self._server.serve(self._connection, method, raw, request_id)
        result: Message = json.loads(encode(answer))
        return result

    async def tool(self, name: str, /, **arguments: Any) -> Message:
        result = await self.ask("tools/call", name=name, arguments=arguments)
        structured: Message = result["structuredContent"]
        return structured

    def start(self, name: str, /, **arguments: Any) -> asyncio.Task[Message]:
        return asyncio.get_running_loop().create_task(self.tool(name, **arguments))

    def start_stateless(
        self, name: str, /, *, state: str | None = None, responses: Message | None = None, **arguments: Any
    ) -> asyncio.Task[Message]:
        """A call of the era without a handshake; its whole result."""
        meta = {
            f"{ERA}protocolVersion": "2026-07-28",
            f"{ERA}clientInfo": {"name": "test", "version": "1"},
            f"{ERA}clientCapabilities": self._capabilities,
        }
        again = {} if state is None else {"requestState": state, "inputResponses": responses}
        call = self.ask("tools/call", name=name, arguments=arguments, _meta=meta, **again)
        return asyncio.get_running_loop().create_task(call)

    async def question(self, number: int = 1) -> tuple[Message, asyncio.Future[Any]]:
        """The n-th that it was asked."""
        await until(lambda: len(self.asked) >= number)
        return self.asked[number - 1]


class Place:
    """A server, its sessions, and clients of it."""

    def __init__(self, here: Stage, server: McpServer) -> None:
        self.here = here
        self._server = server

    async def client(
        self, capabilities: Message = FORMS, principal: str = "me", version: str = "2025-06-18"
    ) -> Client:
        client = Client(self._server, principal, capabilities, version)
        await client.greet()
        return client

    async def session(self, client: Client) -> tuple[str, HandThread]:
        """An idle session: its id, and its thread."""
        known = set(self.here.engine.threads)
        opening = client.start("codex", prompt="hello")
        await until(lambda: set(self.here.engine.threads) - known)
        (thread_id,) = set(self.here.engine.threads) - known
        thread = self.here.engine.threads[thread_id]
        await until(lambda: thread.turn_id)
        thread.end()
        result = await opening
        return result.get("agent_id", ""), thread

    async def audit(self) -> list[str]:
        """How the first question was decided, and those after it; noted right after the answer is sent."""
        outcomes: list[str] = []
        async with asyncio.timeout(DEADLINE_S):
            while not outcomes:
                await asyncio.sleep(0)
                await self.here.sessions._audit.flush()
                outcomes = [line["outcome"] for line in self.here.audit() if line["event_type"] == "approval"]
        return outcomes


@asynccontextmanager
async def place(tmp_path: Path, unattended: Unattended = "decline", **options: Any) -> AsyncIterator[Place]:
    """Options are those of `SessionDefaults` and of `stage`."""
    given = {name: options.pop(name) for name in SessionDefaults.__struct_fields__ if name in options}
    async with stage(tmp_path, **options) as here:
        defaults = SessionDefaults(**{"cwd": tmp_path, "base_dir": tmp_path, **given})
        session_tools = SessionTools(
            here.sessions, here.clock, defaults, AGENTS, Silence, unattended=unattended
        )
        admin_tools = AdminTools(here.sessions, AGENTS, session_tools.status)
        server = McpServer(
            {"name": "test", "version": "1"},
            offers(AGENTS, session_tools, admin_tools, ("codex", "sessions")),
        )
        yield Place(here, server)
