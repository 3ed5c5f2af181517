"""An MCP client that shows everything, and a stage for several servers on one Codex home."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.rehearsal.answer import answer
from laneway.rehearsal.server import Answerer
from tests.doors.stage import Scene, scene
from tests.doors.stdio_client import StdioClient

DEADLINE_S = 60.0
FORMS: dict[str, Any] = {"elicitation": {}}
"""The capabilities of a client that can ask its person."""
ERA = "io.modelcontextprotocol/"

Message = dict[str, Any]


class Stage(Scene):
    """A scene on which MCP servers come and go."""

    @asynccontextmanager
    async def server(
        self,
        *words: str,
        capabilities: Message | None = None,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        greet: bool = True,
        program: tuple[str, ...] = ("-m", "laneway"),
    ) -> AsyncIterator[Client]:
        """`laneway <words>` with a client that has shaken hands; gone at the end."""
        client = Client(await self.spawn(*program, *words, env=env, cwd=cwd))
        try:
            async with asyncio.timeout(DEADLINE_S):
                if greet:
                    await client.greet(capabilities or {})
                yield client
        finally:
            await client.aclose()


@asynccontextmanager
async def stage(state: Path, extra_config: str = "", answerer: Answerer = answer) -> AsyncIterator[Stage]:
    async with scene(state, extra_config, answerer) as parts:
        yield Stage(*parts)


class Client(StdioClient):
    """Requests by number; what comes unasked is kept in order. `on_ask` answers the server's requests."""

    def __init__(self, process: Process) -> None:
        self.heard: list[Message] = []
        """Notifications and requests of the server."""
        self.on_ask: Callable[[Message], Message | None] = lambda message: {"action": "cancel"}
        """The result for a request of the server, or none to leave it open."""
        self.strays: list[Message] | None = None
        """Answers to nothing, from a test that sends what is no request; elsewhere there are none."""
        self._waiting: dict[Any, asyncio.Future[Message]] = {}
        self._number = 0
        self._subscriptions = asyncio.Condition()
        super().__init__(process)

    async def greet(self, capabilities: Message, version: str = "2025-06-18") -> Message:
        answer = await self.ask(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            },
        )
        self.tell("notifications/initialized")
        return answer

    # ── out ────────────────────────────────────────────────────────────────

    def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def tell(self, method: str, params: Message | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})})

    def request(self, method: str, params: Any = None) -> asyncio.Future[Message]:
        """Send it; the future is its whole answer, result or error."""
        self._number += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = answer
        body = {"params": params} if params is not None else {}
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, **body})
        return answer

    @property
    def last_id(self) -> int:
        return self._number

    async def ask(self, method: str, params: Any = None) -> Message:
        return await self.request(method, params)

    async def ask_as(self, request_id: Any, method: str) -> Message:
        """A request under an id of the caller's own."""
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method})
        return await answer

    def start(self, tool: str, /, **arguments: Any) -> asyncio.Future[Message]:
        """A tool call whose answer is waited for later. `_meta` goes beside the arguments."""
        beside = {"_meta": arguments.pop("_meta")} if "_meta" in arguments else {}
        return self.request("tools/call", {"name": tool, "arguments": arguments, **beside})

    async def call(self, tool: str, /, **arguments: Any) -> Message:
        """The answer to a tool call, result or error."""
        return await self.start(tool, **arguments)

    async def result(self, tool: str, /, **arguments: Any) -> Message:
        """The result of a tool call that must not be an error."""
        answer = await self.call(tool, **arguments)
        assert "error" not in answer, answer
        assert not answer["result"].get("isError"), answer
        result: Message = answer["result"]
        return result

    async def content(self, tool: str, /, **arguments: Any) -> Message:
        """The structured content of a good result."""
        structured: Message = (await self.result(tool, **arguments))["structuredContent"]
        return structured

    async def error(self, tool: str, /, **arguments: Any) -> Message:
        """The JSON-RPC error of a call that must fail."""
        answer = await self.call(tool, **arguments)
        assert "error" in answer, answer
        error: Message = answer["error"]
        return error

    async def stateless(self, method: str, params: Message, capabilities: Message | None = None) -> Message:
        """A request of the era without a handshake."""
        meta = {
            f"{ERA}protocolVersion": "2026-07-28",
            f"{ERA}clientInfo": {"name": "test", "version": "1"},
            f"{ERA}clientCapabilities": capabilities or {},
        }
        return await self.ask(method, {**params, "_meta": {**params.get("_meta", {}), **meta}})

    # ── in ─────────────────────────────────────────────────────────────────

    async def wait_heard(self, is_it: Callable[[Message], bool]) -> Message:
        """The first message, past or to come, of which this is true."""
        async with self._subscriptions:
            while True:
                found = next((message for message in self.heard if is_it(message)), None)
                if found is not None:
                    return found
                await self._subscriptions.wait()

    async def wait_event(self, kind: str) -> Message:
        return await self.wait_heard(lambda message: event_kind(message) == kind)

    def events(self) -> list[Message]:
        """The bodies of all `codex/event`s so far."""
        return [message["params"] for message in self.heard if message["method"] == "codex/event"]

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while (line := await self.process.stdout.readline()).endswith(b"\n"):  # half a line: it was killed
            message = json.loads(line)
            if "method" in message:
                await self._hear(message)
            else:
                self._take(message)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(EOFError(self.stderr))

    def _take(self, message: Message) -> None:
        asked = message["id"] if isinstance(message["id"], int | str) else None
        waiting = self._waiting.pop(asked, None)
        if waiting is None:
            assert self.strays is not None, f"an answer to nothing: {message}"
            self.strays.append(message)
        elif not waiting.done():
            waiting.set_result(message)

    async def _hear(self, message: Message) -> None:
        async with self._subscriptions:
            self.heard.append(message)
            self._subscriptions.notify_all()
        if "id" in message:
            answer = self.on_ask(message)
            if answer is not None:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})

    # ── the end ────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        try:
            if self.process.returncode is None:
                async with asyncio.timeout(DEADLINE_S):
                    await self.hang_up()
        finally:
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for waiting in self._waiting.values():
                waiting.cancel()


def event_kind(message: Message) -> str | None:
    """The old name of a `codex/event`."""
    if message.get("method") != "codex/event":
        return None
    return str(message["params"]["msg"]["type"])
