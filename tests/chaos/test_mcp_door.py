"""MCP servers and their Codex are killed at random instants, in the middle of whatever clients do."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from tests.chaos.deeds import STEADY, Deeds, check_state, kill_whole, outside
from tests.chaos.test_store_and_codex import shoot_codex
from tests.core.support import until
from tests.doors.mcp.support import FORMS, Client, Message, stage

ROUNDS = 200 if os.environ.get("LANEWAY_CHAOS") else 4
MAX_HEARD = 60
"""Messages after which the kill comes at the latest: about what three calls tell."""
CHILD_DEAD = -32005


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_codex_killed_under_the_drop_in_costs_no_answer_and_the_next_call_goes_on(
    tmp_path: Path,
) -> None:
    """Every call is answered, nothing of the dead Codex stays, and the thread is had back at once."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with stage(tmp_path) as here:
        async with here.server("mcp-server", cwd=outside(tmp_path)) as client:
            thread = {"threadId": (await client.content("codex", prompt="%say hello"))["threadId"]}
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.server("mcp-server", capabilities=FORMS, cwd=outside(tmp_path)) as client:
                deeds = Deeds(client, chance, has_names=False)
                deeds.do(chance.randrange(1, 4), thread)
                await deeds.some_way_in(chance.randrange(MAX_HEARD))
                shoot_codex(client.process.pid)
                deeds.decline_the_rest()
                assert None not in await deeds.answers(), where
                assert (await back(client, **thread))["content"] == "back", where
                assert await client.hang_up() == 0, where


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_codex_killed_under_sessions_with_names_is_told_and_the_next_server_goes_on(
    tmp_path: Path,
) -> None:
    """No second Codex within the connection (FR-11); all is answered, and nothing is held afterwards."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with stage(tmp_path) as here:
        async with here.server("mcp", cwd=outside(tmp_path)) as client:
            steady = await begin(client)
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.server("mcp", capabilities=FORMS, cwd=outside(tmp_path)) as client:
                assert (await back(client, **steady))["content"] == "back", where
                deeds = Deeds(client, chance, has_names=True)
                deeds.do(chance.randrange(1, 4), steady)
                await deeds.some_way_in(chance.randrange(MAX_HEARD))
                shoot_codex(client.process.pid)
                deeds.decline_the_rest()
                assert None not in await deeds.answers(), where
                # Its death may be heard of a moment later; then the first call after it finds out.
                after = [await client.call("codex-reply", prompt="%say after", **steady) for _ in range(2)]
                assert after[-1]["error"]["code"] == CHILD_DEAD, (where, after)
                assert await client.hang_up() == 0, where
            await check_state(here.sessions, where)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("word", ["mcp-server", "mcp"])
async def test_a_server_killed_at_any_instant_leaves_nothing_behind_but_its_sessions(
    tmp_path: Path, word: str
) -> None:
    """Pipe closed, tree gone, registry readable, locks free; the next server has the session back."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with stage(tmp_path) as here:
        async with here.server(word, cwd=outside(tmp_path)) as client:
            steady = await begin(client, has_names=word == "mcp")
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.server(word, capabilities=FORMS, cwd=outside(tmp_path)) as client:
                if chance.random() < 0.8:  # else it is killed in its very first call
                    assert (await back(client, **steady))["content"] == "back", where
                deeds = Deeds(client, chance, has_names=word == "mcp")
                deeds.do(chance.randrange(1, 4), steady)
                await deeds.some_way_in(chance.randrange(MAX_HEARD))
                await kill_whole(client)
                await deeds.answers()
            await check_state(here.sessions, where)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_a_server_killed_while_it_says_good_bye_leaves_nothing_behind(tmp_path: Path) -> None:
    """Summaries are being asked for, written, sessions closed: any of it may be cut short."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with stage(tmp_path) as here:
        async with here.server("mcp", cwd=outside(tmp_path)) as client:
            steady = await begin(client)
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.server("mcp", capabilities=FORMS, cwd=outside(tmp_path)) as client:
                assert (await back(client, **steady))["content"] == "back", where
                asked = len(here.requests)
                assert client.process.stdin is not None
                client.process.stdin.close()
                if chance.random() < 0.5:
                    # until the model is asked for a summary
                    await until(lambda: len(here.requests) > asked)  # noqa: B023  waited for at once
                for _ in range(chance.randrange(3000)):
                    await asyncio.sleep(0)
                if client.process.returncode is None:
                    await kill_whole(client)
            await check_state(here.sessions, where)


async def begin(client: Client, *, has_names: bool = True) -> Message:
    """The session that goes on over all rounds; how a call names it."""
    if not has_names:
        return {"threadId": (await client.content("codex", prompt="%say hello"))["threadId"]}
    return {"agent_id": (await client.content("codex", prompt="%say hello", identity=STEADY))["agent_id"]}


async def back(client: Client, **steady: str) -> Message:
    """The session's next turn, in this server its first one. One with a name may have been closed meanwhile.

    A Codex that has just been killed may be heard of in the middle of it.
    """
    tool = "codex" if "agent_id" in steady else "codex-reply"
    answer = await client.call(tool, prompt="%say back", **steady)
    if "error" in answer or answer["result"].get("isError"):
        return await client.content(tool, prompt="%say back", **steady)
    content: Message = answer["result"]["structuredContent"]
    return content
