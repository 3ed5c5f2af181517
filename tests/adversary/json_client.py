"""A client of a few lines: one JSON message a line to a `laneway` server, and its answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.adversary.support import DEADLINE_S
from tests.cli.support import start

MCP_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
ACP_HELLO = {"protocolVersion": 1, "clientCapabilities": {}}


def own_places(folder: Path) -> dict[str, str]:
    """An environment in which nothing is kept where other tests would find it."""
    return {"XDG_STATE_HOME": str(folder / "state"), "ATM_HOME": str(folder / "atm")}


class JsonClient:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.notifications: list[dict[str, Any]] = []
        self._count = 0

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer, with its `result` or its `error`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        async with asyncio.timeout(DEADLINE_S):
            while line := await self.process.stdout.readline():
                answer: dict[str, Any] = json.loads(line)
                if answer.get("id") == self._count and "method" not in answer:
                    return answer
                self.notifications.append(answer)
        raise AssertionError(f"the server ended without an answer to {method}")

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        return await self.call("tools/call", name=name, arguments=arguments)


@asynccontextmanager
async def json_client(
    *words: str, hello: dict[str, Any], env: dict[str, str] | None = None
) -> AsyncIterator[JsonClient]:
    """`laneway WORDS`, greeted; it ends with us."""
    process = await start(*words, env=env, stdin=asyncio.subprocess.PIPE)
    client = JsonClient(process)
    try:
        await client.call("initialize", **hello)
        yield client
    finally:
        if process.stdin is not None:
            process.stdin.close()
        async with asyncio.timeout(DEADLINE_S):
            await process.communicate()
