"""`laneway mcp` with sessions on the real Claude Code: their mail, sleep and end; and without one."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.mail.places import Places
from laneway.rehearsal.claude_home import throwaway_claude
from laneway.rehearsal.messages import ClaudeModel
from laneway.wire.guardian import descendants
from tests.claude.test_real_kills import name_of
from tests.core.support import until
from tests.doors.mcp.support import Client, Stage, stage
from tests.doors.mcp.views import QUIET
from tests.mail.tools_support import TEAM, TeamFiles, entry

NO_CLAUDE = """
import sys
sys.modules["claude_agent_sdk"] = None
from laneway.__main__ import main
sys.exit(main())
"""

NO_CODEX = NO_CLAUDE.replace("claude_agent_sdk", "codex_cli_bin")


class Scene:
    def __init__(self, here: Stage, model: ClaudeModel, env: dict[str, str]) -> None:
        self.here = here
        self.model = model
        self.env = env


@asynccontextmanager
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    model = ClaudeModel()
    async with model.server() as server, stage(tmp_path) as here:
        with throwaway_claude(server.origin) as folder:
            yield Scene(here, model, folder.variables)


def claudes(client: Client) -> list[int]:
    """Processes of Claude Code below a server."""
    return [pid for pid in descendants(client.process.pid) if name_of(pid) == "claude"]


def mail_to(name: str, message: str) -> str:
    return f"%tool mcp__laneway__atm_send {json.dumps({'to': name, 'message': message})}"


async def test_mail_becomes_a_turn_of_claude_and_claude_writes_in_its_own_name(tmp_path: Path) -> None:
    """From a colleague to Claude, from Claude to Codex, and an answer: nobody starts those turns."""
    async with scene(tmp_path) as here:
        team_files = TeamFiles(tmp_path)
        team_files.places = Places.of(here.env, tmp_path)
        team_files.create_team(TEAM, "team-lead", "worker")
        async with here.here.server("mcp", env={**QUIET, "ATM_TEAM": TEAM, **here.env}) as client:
            await client.content("codex", prompt="%say hi", engine="claude", identity="claude-1")
            await client.content("codex", prompt="%say hi", identity="codex-1")
            answer = f"%tool atm_send {json.dumps({'to': 'worker', 'message': 'from Codex'})}"
            script = f"{mail_to('codex-1', answer)}\n{mail_to('worker', 'from Claude')}\n%say sent"
            team_files.drop("claude-1", entry("worker", script))
            await until(lambda: len(team_files.entries("worker")) == 2, 60)
            letters = {row["from"]: row["text"] for row in team_files.entries("worker")}
            assert letters == {"claude-1": "from Claude", "codex-1": "from Codex"}
            await until(lambda: all(row["read"] for row in team_files.entries("claude-1")), 60)


async def test_the_settings_say_how_many_sessions_stay_awake(tmp_path: Path) -> None:
    """The longest unused one sleeps, and its next turn wakes it."""
    async with scene(tmp_path) as here:
        env = {**here.env, **QUIET, "LANEWAY_CLAUDE_AWAKE": "1"}
        async with here.here.server("mcp", env=env) as client:
            first = await client.content("codex", prompt="%say remember the milk", engine="claude")
            await client.content("codex", prompt="%say two", engine="claude")
            await until(lambda: len(claudes(client)) == 1, 60)
            again = await client.content("codex-reply", prompt="%say awake", agent_id=first["agent_id"])
            assert again["content"] == "awake"
            assert "remember the milk" in json.dumps(here.model.requests[-1]["messages"])
            await until(lambda: len(claudes(client)) == 1, 60)


async def test_a_call_is_cancelled_and_a_session_closed_as_with_codex(tmp_path: Path) -> None:
    """The turn stops, its process ends with its session, and nothing is left behind the server."""
    async with scene(tmp_path) as here:
        async with here.here.server("mcp", env={**here.env, **QUIET}) as client:
            begun = await client.content("codex", prompt="%say hi", engine="claude")
            agent_id = begun["agent_id"]
            waiting = client.start(
                "codex-reply", prompt="%stream 1000 words over 60 seconds", agent_id=agent_id
            )
            await until(lambda: len(here.model.requests) >= 2, 60)
            client.tell("notifications/cancelled", {"requestId": client.last_id})
            again = await client.content("codex-reply", prompt="%say fine", agent_id=agent_id)
            assert again["content"] == "fine"
            assert not waiting.done()
            pids = claudes(client)
            await client.content("agent_close", agent_id=agent_id)
            assert claudes(client) == []
            assert len(pids) == 1
        for pid in pids:
            assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_where_no_claude_code_is_found_the_server_offers_none(tmp_path: Path) -> None:
    """Its tools are as they were; whoever asks for it nevertheless is told which engines there are."""
    path = tmp_path / "bin"
    path.mkdir()
    async with stage(tmp_path) as here:
        env = {**QUIET, "PATH": str(path)}
        async with here.server("mcp", env=env, program=("-c", NO_CLAUDE)) as client:
            listed = (await client.ask("tools/list", {}))["result"]["tools"]
            tools: dict[str, Any] = {tool["name"]: tool["inputSchema"]["properties"] for tool in listed}
            assert "engine" not in tools["codex"]
            refused = await client.error("codex", prompt="%say hi", engine="claude")
            assert refused["code"] < 0
            done = await client.content("codex", prompt="%say hi")
            assert done["content"] == "hi"


async def test_with_claude_as_the_engine_the_server_works_without_a_codex(tmp_path: Path) -> None:
    """Whoever asks for Codex nevertheless is told how to get one; without the setting there is no server."""
    path = tmp_path / "bin"
    path.mkdir()
    async with scene(tmp_path) as here:
        env = {**QUIET, **here.env, "PATH": str(path), "LANEWAY_ENGINE": "claude", "LANEWAY_CODEX_BIN": ""}
        async with here.here.server("mcp", env=env, program=("-c", NO_CODEX)) as client:
            done = await client.content("codex", prompt="%say hi")
            assert done["content"] == "hi"
            refused = await client.error("codex", prompt="%say hi", engine="codex")
            assert "No Codex was found: install one with" in refused["message"]
            job = (await client.call("codex_spawn", prompt="%say hi"))["result"]
            assert job["isError"]
            assert "No Codex was found: install one with" in job["content"][0]["text"]
            assert (await client.content("codex-reply", threadId=done["threadId"], prompt="%say on"))[
                "content"
            ] == "on"
