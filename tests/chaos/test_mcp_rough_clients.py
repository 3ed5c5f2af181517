"""Clients that flood or talk nonsense, and servers that share one folder of state."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.chaos.deeds import check_state, kill_whole, outside
from tests.doors.mcp.support import Client, Message, stage

ROUNDS = 100 if os.environ.get("LANEWAY_CHAOS") else 2
FLOODS = ROUNDS // 2
FLOOD = 2000
"""Requests in one write: several times what is served side by side."""
SERVERS = 4
NONSENSE = (
    b"\n",
    b"   \n",
    b"nonsense\n",
    b"{\n",
    b'{"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"2.0","method":7}\n',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[[]]}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}\n',
    b'{"jsonrpc":"2.0","method":"no/such","params":{"x":"\\ud83d"}}\n',
    b'{"jsonrpc":"2.0","id":987654321,"result":{}}\n',
    b"\xff\xfe\x00\n",
    b"[" * 2000 + b"\n",
)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("word", ["mcp-server", "mcp"])
async def test_nonsense_between_calls_costs_no_answer(tmp_path: Path, word: str) -> None:
    """Whatever stands between two requests, each of them is answered."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with stage(tmp_path) as here:
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.server(word, cwd=outside(tmp_path)) as client:
                client.strays = []
                assert client.process.stdin is not None
                calls = []
                for _ in range(chance.randrange(2, 6)):
                    client.process.stdin.write(b"".join(chance.choices(NONSENSE, k=chance.randrange(8))))
                    calls.append(client.request("ping"))
                    calls.append(client.start("codex", prompt="%say fine"))
                answers = await asyncio.gather(*calls)
                assert all("result" in answer for answer in answers), (where, answers)
                assert await client.hang_up() == 0, where


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_a_flood_is_answered_to_its_last_request(tmp_path: Path) -> None:
    """More at once than is served side by side: some are told to wait their turn, none is forgotten."""
    async with stage(tmp_path) as here:
        for _ in range(FLOODS):
            async with here.server("mcp", cwd=outside(tmp_path)) as client:
                turn = client.start("codex", prompt="%stream 2000 words")
                flood = [client.request("tools/list", {}) for _ in range(FLOOD)]
                answers = await asyncio.gather(*flood)
                assert all("result" in answer or "error" in answer for answer in answers)
                assert "result" in await turn
                assert "result" in await client.ask("ping")


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_servers_that_share_a_folder_of_state_share_no_identity(tmp_path: Path) -> None:
    """All ask for one name at once: one gets it. Some are killed, the others end; the next has it back."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with stage(tmp_path) as here:
        agent_id: str | None = None
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with AsyncExitStack() as stack:
                clients = [
                    await stack.enter_async_context(here.server("mcp", cwd=outside(tmp_path)))
                    for _ in range(SERVERS)
                ]
                agent_id = await contend(clients, agent_id, where)
                for client in chance.sample(clients, chance.randrange(SERVERS + 1)):
                    await kill_whole(client)
            await check_state(here.sessions, where)


async def contend(clients: list[Client], agent_id: str | None, where: str) -> str:
    """One name, asked for by all at once: which session has it."""
    asked: Message = {"prompt": "%say mine", "identity": "wanted"}
    if agent_id is not None:
        asked = {"prompt": "%say mine", "agent_id": agent_id}
    answers = await asyncio.gather(*(client.call("codex", **asked) for client in clients))
    won = [answer["result"]["structuredContent"] for answer in answers if "result" in answer]
    assert len(won) == 1, (where, answers)
    assert won[0]["content"] == "mine", where
    assert agent_id in (None, won[0]["agent_id"]), where
    return str(won[0]["agent_id"])
