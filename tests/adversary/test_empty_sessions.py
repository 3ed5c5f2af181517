"""Sessions that nothing was said in yet, whose Laneway is killed: the next one goes on with them.

Codex writes a thread down with its first turn. What was killed before that is known to nobody but us.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from tests.adversary.halting import halting, kill_whole, listed, own_state, wait_made
from tests.chaos.test_store_and_codex import shoot_codex
from tests.doors.acp import support as acp
from tests.doors.mcp import support as mcp
from tests.doors.mcp.views import registry

ROUNDS = 40 if os.environ.get("LANEWAY_CHAOS") else 3
FIRST_TURN_S = 0.3
"""A first turn takes about this long: within it the kill comes by chance."""


@pytest.mark.parametrize("way", ["load", "resume"])
async def test_an_agent_killed_right_after_it_named_a_session_can_be_followed_by_another(
    tmp_path: Path, way: str
) -> None:
    """What was answered holds, however little time there was to write it down."""
    env = own_state(tmp_path)
    async with acp.stage(tmp_path) as here:
        async with here.agent(env=env) as client:
            session = await client.new()
            await kill_whole(client.process)
        async with here.agent(env=env) as client:
            await (client.load if way == "load" else client.resume)(session)
            assert await client.prompt(session, "%say first") == {"stopReason": "end_turn"}
        async with here.agent(env=env) as client:
            await client.load(session)
            assert client.messages(session) == ["first"]


async def test_an_agent_killed_before_codex_had_the_first_prompt_can_be_followed_by_another(
    tmp_path: Path,
) -> None:
    """The prompt is lost, and the session is not."""
    env, mark = halting(tmp_path, "turn/start")
    async with acp.stage(tmp_path) as here:
        async with here.agent(env=env) as client:
            session = await client.new()
            going = client.start_prompt(session, "%say lost")
            await wait_made(mark)
            await kill_whole(client.process)
            await asyncio.gather(going, return_exceptions=True)
        async with here.agent(env=env) as client:
            await client.load(session)
            assert await client.prompt(session, "%say first") == {"stopReason": "end_turn"}
            assert await listed(client) == {session}


@pytest.mark.parametrize("killed", ["laneway", "codex"])
@pytest.mark.parametrize("tool", ["codex", "codex-reply"])
async def test_a_named_session_killed_before_its_first_turn_is_had_back(
    tmp_path: Path, killed: str, tool: str
) -> None:
    """Under its own name and id, with what it was opened with."""
    env, mark = halting(tmp_path, "turn/start")
    async with mcp.stage(tmp_path) as here:
        async with here.server("mcp", env=env) as client:
            opening = client.start(
                "codex", prompt="%say lost", identity="dev", sandbox="read-only", cwd=str(here.work)
            )
            await wait_made(mark)
            if killed == "laneway":
                await kill_whole(client.process)
            else:
                shoot_codex(client.process.pid)
            await asyncio.gather(opening, return_exceptions=True)
        (before,) = registry(here, "dev")
        async with here.server("mcp", env=env) as client:
            if tool == "codex-reply" and killed == "codex":
                tool = "codex"  # it was closed in order: only `codex` has it back
            again = await client.content(tool, prompt="%say first", agent_id=before["agent_id"])
            assert (again["content"], again["agent_id"]) == ("first", before["agent_id"])
            await client.content("codex-reply", prompt="%say second", agent_id=before["agent_id"])
        (after,) = registry(here, "dev")
        kept = ("agent_id", "identity", "cwd", "sandbox", "started_at")
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
        assert "first" in str(here.requests[-2]["input"])


async def test_a_session_whose_history_was_deleted_is_not_begun_anew(tmp_path: Path) -> None:
    """It had words once: that they are gone must be said, not hidden behind an empty session."""
    env = own_state(tmp_path)
    async with acp.stage(tmp_path) as here:
        async with here.agent(env=env) as client:
            session = await client.new()
            await client.prompt(session, "%say once")
        for path in here.home.glob("sessions/**/*.jsonl"):
            path.unlink()
        async with here.agent(env=env) as client:
            where = {"sessionId": session, "cwd": str(here.work), "mcpServers": []}
            error = await client.refusal("session/load", where)
            assert error["data"]["kind"] == "session_unknown"


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_whenever_it_is_killed_in_its_first_turn_the_session_is_there(tmp_path: Path) -> None:
    """With the answer, if it was given; else with what Codex had written of it; and it goes on."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    env = own_state(tmp_path)
    async with acp.stage(tmp_path) as here:
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.agent(env=env) as client:
                session = await client.new()
                going = client.start_prompt(session, "%say first")
                await asyncio.sleep(chance.uniform(0, FIRST_TURN_S))  # until an instant, whatever happens
                await kill_whole(client.process)
                (ended,) = await asyncio.gather(going, return_exceptions=True)
            async with here.agent(env=env) as client:
                await client.load(session)
                if isinstance(ended, dict):
                    assert client.messages(session) == ["first"], where
                assert await client.prompt(session, "%say second") == {"stopReason": "end_turn"}, where
                assert session in await listed(client), where
