"""MCP's Inspector, as people use it on the command line."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import LANEWAY, start
from tests.peers.support import brought, node

WORDS = [*LANEWAY, "mcp-server", "--rehearse"]


async def inspect(*words: str) -> Any:
    """What the Inspector tells of one request, decoded."""
    package = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    # It hands on only what it thinks safe of its environment.
    handed = [
        f"{name}={os.environ[name]}" for name in ("PYTHONPATH", "LANEWAY_CODEX_BIN") if name in os.environ
    ]
    environment = [word for pair in handed for word in ("-e", pair)]
    ran = await node(brought("inspector-2.12.0", package), "--cli", *environment, *words)
    assert ran.code == 0, ran.err + ran.out
    return json.loads(ran.out)


@pytest.mark.peers
async def test_the_inspector_lists_and_calls_on_standard_streams() -> None:
    """The two tools of the old server, and a turn."""
    listed = await inspect(*WORDS, "--method", "tools/list")
    assert [tool["name"] for tool in listed["tools"]] == ["codex", "codex-reply"]
    call = ("--method", "tools/call", "--tool-name", "codex", "--tool-arg", "prompt=%say hello")
    called = await inspect(*WORDS, *call)
    assert called["structuredContent"]["content"] == "hello"


@pytest.mark.peers
async def test_the_inspector_lists_and_calls_over_http(tmp_path: Path) -> None:
    """With the token that `laneway mcp --http` made for this run."""
    process = await start("mcp", "--rehearse", "--http", "127.0.0.1:0", env={"ATM_HOME": str(tmp_path)})
    try:
        assert process.stderr is not None
        url, token = await told(process.stderr)
        target = (url, "--transport", "http", "--header", f"Authorization: Bearer {token}")
        listed = await inspect(*target, "--method", "tools/list")
        assert "codex" in [tool["name"] for tool in listed["tools"]]
        call = ("--method", "tools/call", "--tool-name", "codex", "--tool-arg", "prompt=%say hello")
        called = await inspect(*target, *call)
        assert called["structuredContent"]["content"] == "hello"
    finally:
        process.terminate()
        await process.communicate()
    assert process.returncode == 0


async def told(stderr: asyncio.StreamReader) -> tuple[str, str]:
    """The address and the token, as the server says them to the terminal."""
    said = ""
    while not (found := re.search(r"(http://\S+/mcp)\n.*token \(for this run\): (\S+)\n", said)):
        line = await stderr.readline()
        assert line, said
        said += line.decode()
    return found[1], found[2]
