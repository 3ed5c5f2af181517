"""The instructions for a boss, as the official Python client lists and reads them: prompt and resource."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from laneway.doors.mcp.definitions import ORCHESTRATE
from laneway.doors.mcp.job_instructions import URI, JobInstructions
from laneway.doors.mcp.mail_resources import ResourcesByScheme
from laneway.doors.mcp.server import McpServer
from tests.doors.mcp.http_support import TOKEN, serving

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "CODEX_SUBAGENTS_ORCHESTRATION.md"
ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])
"""With a handshake, and the stateless one, which the client chooses by itself."""
INVALID_PARAMS, METHOD_NOT_FOUND = -32602, -32601


@asynccontextmanager
async def on_pipes(era: str, *flags: str) -> AsyncIterator[Client]:
    """`laneway mcp` itself."""
    words = ["-m", "laneway", "mcp", "--rehearse", *flags]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with asyncio.timeout(60), Client(server, mode=era) as peer:
        yield peer


@asynccontextmanager
async def over_http(era: str) -> AsyncIterator[Client]:
    instructions = JobInstructions()
    info = {"name": "test", "version": "1"}
    server = McpServer(info, (), resources=ResourcesByScheme(docs=instructions), prompts=instructions)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        serving(server) as place,
        httpx2.AsyncClient(headers=headers, timeout=30) as web,
        Client(streamable_http_client(place.url, http_client=web), mode=era) as peer,
    ):
        yield peer


async def check(peer: Client, era: str) -> None:
    """The page is declared, listed and read, word for word, both ways; anything else is refused."""
    assert peer.protocol_version == ("2025-11-25" if era == "legacy" else "2026-07-28")
    page = PAGE.read_text()
    assert peer.server_capabilities.prompts is not None
    assert peer.server_capabilities.resources is not None
    assert peer.server_capabilities.prompts.list_changed in (None, False)
    (prompt,) = (await peer.list_prompts()).prompts
    assert (prompt.name, prompt.title) == (ORCHESTRATE["name"], ORCHESTRATE["title"])
    assert not prompt.arguments
    (message,) = (await peer.get_prompt(prompt.name)).messages
    assert message.role == "user"
    assert isinstance(message.content, mcp_types.TextContent)
    assert message.content.text == page
    listed = {str(each.uri): each for each in (await peer.list_resources()).resources}
    assert listed[URI].mime_type == "text/markdown"
    (contents,) = (await peer.read_resource(URI)).contents
    assert isinstance(contents, mcp_types.TextResourceContents)
    assert (contents.text, contents.mime_type) == (page, "text/markdown")
    with pytest.raises(MCPError, match="There is no prompt nothing") as refused:
        await peer.get_prompt("nothing")
    assert refused.value.code == INVALID_PARAMS
    with pytest.raises(MCPError, match="There is no resource") as refused:
        await peer.read_resource("docs://laneway/other.md")
    assert refused.value.code == INVALID_PARAMS


@pytest.mark.covers("J-boss.1")
@ERAS
async def test_laneway_mcp_has_the_page_as_a_prompt_and_as_a_resource(era: str) -> None:
    """Wherever the job tools are on, which is the default."""
    async with on_pipes(era) as peer:
        await check(peer, era)


@ERAS
async def test_it_is_the_same_over_http(era: str) -> None:
    """Where the name of the prompt is in a header, too."""
    async with over_http(era) as peer:
        await check(peer, era)


@ERAS
async def test_without_the_job_tools_there_is_no_prompt(era: str) -> None:
    """Nothing is declared; of the two eras, the older one gets an empty list, as it always did."""
    async with on_pipes(era, "--tools", "sessions") as peer:
        assert peer.server_capabilities.prompts is None
        if era == "legacy":
            assert (await peer.list_prompts()).prompts == []
        else:
            with pytest.raises(MCPError) as missing:
                await peer.list_prompts()
            assert missing.value.code == METHOD_NOT_FOUND
        with pytest.raises(MCPError) as missing:
            await peer.get_prompt(ORCHESTRATE["name"])
        assert missing.value.code == METHOD_NOT_FOUND
        assert URI not in {str(each.uri) for each in (await peer.list_resources()).resources}


def test_a_server_that_lists_it_has_not_loaded_it() -> None:
    """What reads it is a module of its own."""
    words = "import sys, laneway.app.mcp; print('laneway.jobs.orchestration' in sys.modules)"
    argv = [sys.executable, "-c", words]
    ran = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "False\n"
