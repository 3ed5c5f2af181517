"""Point 9: what MCP tools return appears as content, images too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.doors.acp import mcp_tools
from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, ZED, Client, Message, Stage, select, stage, text
from tests.doors.acp.telling import last_call, story

SERVER: Message = {
    "name": "tools",
    "command": sys.executable,
    "args": [mcp_tools.__file__],
    "env": [],
}
SHOWN: dict[str, list[Message]] = {
    "words": [{"type": "text", "text": "Said by the server."}],
    "picture": [
        {"type": "text", "text": "One point:"},
        {"type": "image", "data": mcp_tools.PIXEL, "mimeType": "image/png"},
    ],
    "papers": [
        {"type": "resource_link", "uri": "file:///a/paper.txt", "name": "paper", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "note://1", "mimeType": "text/plain", "text": "A note."}},
    ],
    "figures": [{"type": "text", "text": '```json\n{\n  "sum": 42\n}\n```'}],
    "trouble": [{"type": "text", "text": "It did not work."}],
}
"""What is shown of each tool's result."""
WITHOUT = ("usage_update", "agent_thought_chunk")
"""Codex warns of a model that it does not know, in words of its own."""


def show_all_tools(here: Stage) -> None:
    """Codex shows a model that it does not know the tools of MCP servers at once; others have to search."""
    config = here.home / "config.toml"
    config.write_text(config.read_text().replace('model = "gpt-5.5"', 'model = "no-such-model"'))


async def call(client: Client, session: str, tool: str) -> Message:
    prompt = f'%tool {tool} {{"about": "x"}}\n%say Called.'
    assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
    return last_call(client, session)


@pytest.mark.parametrize(
    ("name", "capabilities"), [("bare", {}), ("full", FULL), ("zed", ZED)], ids=["bare", "full", "zed"]
)
async def test_every_kind_of_result_is_content_of_the_call(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """Text, images, resources, structured values, errors: for every client, after it was asked."""
    async with shared.stage(show_all_tools) as here, here.agent(capabilities=capabilities) as client:
        client.on_permission = lambda params: select(params, "allow_once")
        session = await client.new(mcpServers=[SERVER])
        for tool, blocks in SHOWN.items():
            made = await call(client, session, tool)
            assert made["content"] == [{"type": "content", "content": block} for block in blocks], tool
            assert made["status"] == ("failed" if tool == "trouble" else "completed"), tool
            assert (made["title"], made["kind"]) == (f"tools.{tool}", "other")
            assert made["rawInput"]["arguments"] == {"about": "x"}
        assert len(client.asked) == len(SHOWN)
    if name == "bare":
        golden("point-09-mcp-results", story(client, WITHOUT))


async def test_a_call_that_was_declined_or_cancelled_ends(shared: Shared) -> None:
    """The turn goes on after the one, and ends with the other."""
    async with shared.stage(show_all_tools) as here, here.agent() as client:
        session = await client.new(mcpServers=[SERVER])
        client.on_permission = lambda params: select(params, "decline")
        declined = await call(client, session, "words")
        assert (declined["status"], text(declined["content"])) == (
            "failed",
            "user rejected MCP tool call",
        )
        client.on_permission = lambda params: select(params, "allow_once")
        going = client.start_prompt(session, "%tool patience {}")
        await client.wait_update(
            lambda each: each.kind == "tool_call_update" and each.body.get("title") == "tools.patience"
        )
        client.cancel(session)
        assert await going == {"stopReason": "cancelled"}
        assert text(last_call(client, session)["content"]) == "Interrupted."
        assert client.open_tool_calls() == {}
    golden("point-09-mcp-results-declined", story(client, WITHOUT))


async def test_a_server_that_does_not_start_is_named_and_the_turn_goes_on(tmp_path: Path) -> None:
    """Only that one is missing."""
    missing = {**SERVER, "name": "broken", "command": str(tmp_path / "no-such-program")}
    async with stage(tmp_path) as here:
        show_all_tools(here)
        async with here.agent(capabilities=FULL) as client:
            client.on_permission = lambda params: select(params, "allow_once")
            session = await client.new(mcpServers=[missing, SERVER])
            assert (await call(client, session, "words"))["status"] == "completed"
            assert any("broken did not start" in notice["title"] for notice in client.of("notice", session))
            assert "no-such-program" not in (here.home / "config.toml").read_text()
