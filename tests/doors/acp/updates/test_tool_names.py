"""Every tool call says which tool it is of: for clients that show calls by their tools."""

from __future__ import annotations

import base64

from tests.doors.acp.answerers import odd_model
from tests.doors.acp.mcp_tools import PIXEL
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import select
from tests.doors.acp.test_point_09_mcp_results import SERVER, show_all_tools


async def test_every_tool_call_names_the_tool(shared: Shared) -> None:
    """From its first word on: those of Codex by Codex's own names, those of others with their server's."""
    tools = {
        "shell": "%run true",
        "apply_patch": "%patch a.txt x",
        "view_image": '%tool view_image {"path": "dot.png"}',
        "web_search": "!search cats",
        "tools.words": "%tool words {}",
    }
    async with shared.stage(show_all_tools, answerer=odd_model()) as here:
        (here.work / "dot.png").write_bytes(base64.b64decode(PIXEL))
        async with here.agent() as client:
            client.on_permission = lambda params: select(params, "allow_once")
            session = await client.new(mcpServers=[SERVER])
            for prompt in tools.values():
                await client.prompt(session, prompt)
        async with here.agent() as later:
            await later.load(session)
    for each in (client, later):
        assert [call.get("name") for call in each.of("tool_call", session)] == list(tools)
