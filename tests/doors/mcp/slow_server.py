"""An MCP server on pipes whose house opens when somebody writes "open" into the pipe that is named to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.base.errors import StoreError
from laneway.doors.mcp.server import Call, McpServer, Offer
from laneway.doors.mcp.server_info import ServerInfo
from laneway.doors.mcp.stdio import OpenServer, serve_stdio

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
FRONT = ServerInfo(info={"name": "slow", "version": "1"}, tools=(TOOL,))


async def echo(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(arguments["text"])}]}


async def nothing() -> None:
    pass


def main(gate: Path, *flags: str) -> int:
    @asynccontextmanager
    async def open_server() -> AsyncIterator[OpenServer]:
        if await asyncio.to_thread(gate.read_text) != "open":
            raise StoreError("The server stays closed.")
        yield OpenServer(McpServer(FRONT.info, [Offer(TOOL, echo)]), nothing)

    try:
        asyncio.run(serve_stdio(FRONT, open_server, opens_first="first" in flags))
    except StoreError as error:
        print(error, file=sys.stderr)
        return 7
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), *sys.argv[2:]))
