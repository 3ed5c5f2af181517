"""Standard input and output that are no pipes: plain files, and nothing at all."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.doors.mcp.support import DEADLINE_S, stage

GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.mark.parametrize("command", ["mcp-server", "mcp"])
async def test_requests_from_a_file_are_answered_into_a_file(tmp_path: Path, command: str) -> None:
    """As in `laneway mcp-server < requests > answers`: asyncio itself takes only pipes."""
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    asked = [("initialize", GREETING), ("tools/list", {})]
    requests.write_text(
        "".join(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
            for number, (method, params) in enumerate(asked)
        )
    )
    async with stage(tmp_path / "state") as here:
        with requests.open("rb") as source, answers.open("wb") as target:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "laneway",
                command,
                stdin=source,
                stdout=target,
                env=here.environment,
                cwd=here.work,
            )
        async with asyncio.timeout(DEADLINE_S):
            assert await process.wait() == 0
    told = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [message["id"] for message in told] == [0, 1]
    assert all("result" in message for message in told)


async def test_without_any_input_a_server_ends(tmp_path: Path) -> None:
    """An event loop cannot wait for /dev/null; a server that did would never end."""
    async with stage(tmp_path) as here, asyncio.timeout(DEADLINE_S):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "laneway",
            "mcp",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            env=here.environment,
            cwd=here.work,
        )
        assert await process.wait() == 0
