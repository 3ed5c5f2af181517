"""A client that vanishes, however and whenever it does: nothing that it started is left running.

The stage looks for what is left at the end of every test.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.doors.acp.support import Client, Stage, stage
from tests.doors.acp.telling import Gates

ENDS = pytest.mark.parametrize("end", ["EOF", "gone", "SIGTERM"])


async def vanish(client: Client, end: str) -> None:
    """Hang up in order, drop both pipes as a killed client does, or end the agent by a signal."""
    if end == "SIGTERM":
        client.process.send_signal(signal.SIGTERM)
    elif end == "EOF":
        await client.hang_up()
    else:
        transport: Any = client.process._transport  # type: ignore[attr-defined]
        for stream in (1, 0):
            transport.get_pipe_transport(stream).close()
    # A signal may come before there is anybody to hear it.
    assert await client.process.wait() in (0, -signal.SIGTERM if end == "SIGTERM" else 0), client.stderr


@ENDS
async def test_in_the_middle_of_a_turn(tmp_path: Path, end: str) -> None:
    """The command that it ran is gone as well; what waited behind it never began."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        with closing(Gates(here.work)) as made:
            client.start_prompt(session, f"%run read x < {made.new().name}\n%say After.")
            client.start_prompt(session, "%say Behind.")
            await client.wait_kind("tool_call", session)
            await vanish(client, end)
    assert len(here.requests) == 1


@ENDS
async def test_with_a_permission_open(tmp_path: Path, end: str) -> None:
    """What nobody allowed is not done."""
    async with stage(tmp_path) as here, here.agent() as client:
        client.on_permission = lambda params: None
        client.start_prompt(await client.new(), "%run! touch ../outside\n%say After.")
        await client.wait_asked("session/request_permission")
        await vanish(client, end)
        assert not (here.home.parent / "outside").exists()


async def large(here: Stage) -> str:
    """A session that does not fit into a pipe."""
    async with here.agent() as client:
        session = await client.new()
        await client.prompt(session, "%stream 100000 words")
    return session


async def test_while_its_session_is_loaded(tmp_path: Path) -> None:
    """Also if it stopped reading long before."""
    async with stage(tmp_path) as here:
        session = await large(here)
        for end, reads in (("EOF", False), ("gone", True), ("SIGTERM", False)):
            async with here.agent() as client:
                where = {"sessionId": session, "cwd": str(here.work), "mcpServers": []}
                loading = client.request("session/load", where)
                await client.wait_kind("user_message_chunk", session)
                if not reads:
                    client.stop_reading()
                await vanish(client, end)
                await asyncio.wait([loading], timeout=0)


async def test_before_it_has_said_anything(tmp_path: Path) -> None:
    """Or right behind the greeting, while Codex is still on its way."""
    async with stage(tmp_path) as here:
        for end, greet in (("EOF", False), ("gone", True), ("SIGTERM", False), ("SIGTERM", True)):
            async with here.agent(greet=greet) as client:
                await vanish(client, end)


@ENDS
async def test_while_a_codex_that_says_nothing_opens_its_session(tmp_path: Path, end: str) -> None:
    """It is not waited for, and no other one is started for a client that has gone."""
    mute, starts = tmp_path / "codex", tmp_path / "starts"
    mute.write_text(f'#!/bin/sh\necho "$1" >> {starts}\nexec cat > /dev/null\n')
    mute.chmod(0o755)
    async with stage(tmp_path) as here, here.agent(env={"LANEWAY_CODEX_BIN": str(mute)}) as client:
        client.request("session/new", {"cwd": str(here.work), "mcpServers": []})
        client.cancel("sess_none")  # behind it
        while not starts.exists():
            await asyncio.sleep(0)
        await vanish(client, end)
    assert starts.read_text().split().count("app-server") == 1
