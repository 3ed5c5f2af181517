"""The official Python client on standard input and output, against the drop-in and the real Codex."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

DEADLINE_S = 60.0
ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])
"""With a handshake, and as the client chooses: that is the stateless one, where it is offered."""


@asynccontextmanager
async def client(era: str, *flags: str, **more: Any) -> AsyncIterator[Client]:
    words = ["-m", "laneway", *flags, "mcp-server", "--rehearse"]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with asyncio.timeout(DEADLINE_S), Client(server, mode=era, **more) as connected:
        yield connected


def answering(action: Any) -> tuple[list[str], Any]:
    """What was asked, and a person who always answers the same."""
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> mcp_types.ElicitResult:
        asked.append(params.message)
        return mcp_types.ElicitResult(action=action, content={} if action == "accept" else None)

    return asked, elicit


def words(result: mcp_types.CallToolResult) -> str:
    """The model's answer, which stands in both places of a result."""
    (content,) = result.content
    assert isinstance(content, mcp_types.TextContent)
    assert isinstance(result.structured_content, dict)
    assert result.structured_content["content"] == content.text
    return content.text


@pytest.mark.parametrize("era", ["legacy", "auto", "2026-07-28"])
async def test_a_turn_and_a_reply_with_progress(era: str) -> None:
    """The client checks each result against the schema that the tool announced."""
    steps: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with client(era, "--disable", "apps") as peer:
        assert peer.protocol_version == ("2025-11-25" if era == "legacy" else "2026-07-28")
        tools = {tool.name: tool for tool in (await peer.list_tools()).tools}
        assert list(tools) == ["codex", "codex-reply"]
        assert all(tool.output_schema is not None for tool in tools.values())
        first = await peer.call_tool("codex", {"prompt": "%say one"}, progress_callback=on_progress)
        assert words(first) == "one"
        assert "Codex has begun." in steps
        assert isinstance(first.structured_content, dict)
        thread_id = first.structured_content["threadId"]
        second = await peer.call_tool("codex-reply", {"threadId": thread_id, "prompt": "%say two"})
        assert second.structured_content == {"threadId": thread_id, "content": "two"}


def prompt(made: Path) -> str:
    """A step that needs approval, and the model's last words."""
    return f"%run! touch {made}\n%say finished"


@ERAS
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_an_approval_is_what_the_person_at_the_client_says(
    era: str, action: str, tmp_path: Path
) -> None:
    """Only a yes is a yes; and if nobody said anything, the result says what was declined."""
    made = tmp_path / "made.txt"
    asked, elicit = answering(action)
    async with client(era, "-a", "on-request", "-s", "read-only", elicitation_callback=elicit) as peer:
        text = words(await peer.call_tool("codex", {"prompt": prompt(made)}))
    assert len(asked) == 1
    assert str(made) in asked[0]
    assert made.exists() is (action == "accept")
    assert text.startswith("finished")
    assert ("Declined, because" in text) is (action == "cancel")


@ERAS
async def test_a_client_that_can_ask_nobody_is_told_so(era: str, tmp_path: Path) -> None:
    """The turn goes on without the command."""
    made = tmp_path / "made.txt"
    async with client(era, "-a", "on-request", "-s", "read-only") as peer:
        text = words(await peer.call_tool("codex", {"prompt": prompt(made)}))
    assert text.startswith("finished")
    assert "Declined, because" in text
    assert not made.exists()


@ERAS
async def test_a_cancelled_call_leaves_thread_and_server_healthy(era: str) -> None:
    """The next call is answered, also on the same thread."""
    begun = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async with client(era) as peer:
        first = await peer.call_tool("codex", {"prompt": "%say ready"})
        assert isinstance(first.structured_content, dict)
        thread_id = first.structured_content["threadId"]
        reply = {"threadId": thread_id, "prompt": "%hang"}
        calling = asyncio.create_task(peer.call_tool("codex-reply", reply, progress_callback=on_progress))
        await begun.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        after = await peer.call_tool("codex-reply", {"threadId": thread_id, "prompt": "%say well"})
        assert words(after) == "well"


@ERAS
async def test_mistakes_are_told_apart(era: str) -> None:
    """A tool that failed is a result; a method that is not there is an error."""
    async with client(era) as peer:
        unknown = await peer.call_tool("no-such-tool", {})
        assert unknown.is_error
        wrong = await peer.call_tool("codex", {"sandbox": "none"})
        assert wrong.is_error
        with pytest.raises(MCPError) as refused:
            await peer.get_prompt("nothing")
        assert refused.value.code == -32601
