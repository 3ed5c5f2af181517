"""How to orchestrate jobs, for the model of a client: one page, as an MCP prompt and as a resource.

What lists them is known without the page, which is read only for a client that asks for it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from laneway.base.errors import RemoteError
from laneway.base.plain import code_label
from laneway.doors.mcp.definitions import ORCHESTRATE
from laneway.doors.mcp.server import Call
from laneway.wire.messages import INVALID_PARAMS

SCHEME = "docs"
URI = f"{SCHEME}://laneway/CODEX_SUBAGENTS_ORCHESTRATION.md"
MARKDOWN = "text/markdown"


class JobInstructions:
    """The page as `Prompts` and as `Resources`."""

    def prompts(self) -> list[dict[str, Any]]:
        return [ORCHESTRATE]

    async def prompt(self, call: Call, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        if name != ORCHESTRATE["name"]:
            raise RemoteError(INVALID_PARAMS, f"There is no prompt {code_label(name)}", {"name": name[:200]})
        content = {"type": "text", "text": await _page()}
        return {"description": ORCHESTRATE["description"], "messages": [{"role": "user", "content": content}]}

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        if cursor is not None:
            return [], None
        return [{**ORCHESTRATE, "uri": URI, "mimeType": MARKDOWN}], None

    def templates(self) -> list[dict[str, Any]]:
        return []

    async def read(self, call: Call, uri: str) -> list[dict[str, Any]]:
        if uri != URI:
            raise RemoteError(INVALID_PARAMS, f"There is no resource {code_label(uri)}", {"uri": uri[:200]})
        return [{"uri": uri, "mimeType": MARKDOWN, "text": await _page()}]


async def _page() -> str:
    from laneway.jobs.orchestration import instructions

    return await asyncio.to_thread(instructions)
