"""Laneway or its Codex is killed while a session is closed: its thread is never lost to the list.

Codex gives a thread up only when it is archived, and it is unarchived at once. In between it is missing from
every list and cannot be resumed.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from laneway.codex import locate
from tests.adversary.halting import halting, kill_whole, listed, own_state, wait_made
from tests.chaos.test_store_and_codex import shoot_codex
from tests.core.support import until
from tests.doors.acp import support as acp
from tests.doors.mcp import support as mcp
from tests.doors.stage import Scene

ROUNDS = 40 if os.environ.get("LANEWAY_CHAOS") else 3
RELEASE_S = 0.3
INSTANT_S = 0.001
"""Between two looks for an instant: a release stays archived for longer."""
"""A release takes about this long: within it the kill comes by chance."""


def archived(here: Scene) -> list[str]:
    return sorted(path.name for path in (here.home / "archived_sessions").glob("*.jsonl"))


# ── between the two calls ──────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["list", "load", "resume", "fork"])
async def test_an_editor_has_a_session_back_whose_agent_was_killed_while_it_closed(
    tmp_path: Path, way: str
) -> None:
    """Whatever the next one asks for first."""
    env, mark = halting(tmp_path, "thread/unarchive")
    async with acp.stage(tmp_path) as here:
        async with here.agent(env=env) as client:
            session = await client.new()
            await client.prompt(session, "%say before")
            closing = client.request("session/close", {"sessionId": session})
            await wait_made(mark)
            await kill_whole(client.process)
            await asyncio.gather(closing, return_exceptions=True)
        assert len(archived(here)) == 1
        async with here.agent("--unstable", env=env, unstable=["session/fork"]) as client:
            if way == "list":
                assert await listed(client) == {session}
            elif way == "load":
                await client.load(session)
                assert client.messages(session) == ["before"]
            elif way == "resume":
                await client.resume(session)
                assert await client.prompt(session, "%say after") == {"stopReason": "end_turn"}
            else:
                where = {"sessionId": session, "cwd": str(here.work), "mcpServers": []}
                assert (await client.ask("session/fork", where))["sessionId"] != session
            assert archived(here) == []
            assert session in await listed(client)


async def test_an_editor_has_a_session_back_whose_codex_was_killed_while_it_closed(tmp_path: Path) -> None:
    """In the same living agent."""
    env, mark = halting(tmp_path, "thread/unarchive")
    async with acp.stage(tmp_path) as here, here.agent(env=env) as client:
        session = await client.new()
        await client.prompt(session, "%say before")
        closing = client.request("session/close", {"sessionId": session})
        await wait_made(mark)
        shoot_codex(client.process.pid)
        assert await closing == {}
        assert len(archived(here)) == 1
        client.updates.clear()
        await client.load(session)
        assert client.messages(session) == ["before"]
        assert await client.prompt(session, "%say after") == {"stopReason": "end_turn"}
        assert archived(here) == []


async def test_another_agent_that_runs_all_along_has_it_back_as_well(tmp_path: Path) -> None:
    """It started before the kill, and need not be started again."""
    env, mark = halting(tmp_path, "thread/unarchive")
    untouched = {**env, "LANEWAY_CODEX_BIN": locate.find().path}
    async with acp.stage(tmp_path) as here, here.agent(env=untouched) as other:
        assert await listed(other) == set()
        async with here.agent(env=env) as client:
            session = await client.new()
            await client.prompt(session, "%say before")
            closing = client.request("session/close", {"sessionId": session})
            await wait_made(mark)
            await kill_whole(client.process)
            await asyncio.gather(closing, return_exceptions=True)
        assert await listed(other) == {session}
        await other.load(session)


@pytest.mark.parametrize("word", ["agent_id", "threadId"])
async def test_a_named_session_is_had_back_whose_server_was_killed_while_it_closed(
    tmp_path: Path, word: str
) -> None:
    """It is listed, and a reply goes on with it."""
    env, mark = halting(tmp_path, "thread/unarchive")
    async with mcp.stage(tmp_path) as here:
        async with here.server("mcp", env=env) as client:
            began = await client.content("codex", prompt="%say before", identity="dev")
            closing = client.start("agent_close", identity="dev")
            await wait_made(mark)
            await kill_whole(client.process)
            await asyncio.gather(closing, return_exceptions=True)
        assert len(archived(here)) == 1
        async with here.server("mcp", env=env) as client:
            (shown,) = (await client.content("agent_sessions"))["sessions"]
            assert shown["agent_id"] == began["agent_id"]
            again = await client.content("codex-reply", prompt="%say after", **{word: began[word]})
            assert again["content"] == "after"
        assert archived(here) == []


@pytest.mark.parametrize("killed", ["laneway", "codex"])
async def test_the_next_start_of_any_laneway_finishes_it(tmp_path: Path, killed: str) -> None:
    """One that wants nothing of the thread: the user's own Codex finds it again all the same."""
    env, mark = halting(tmp_path, "thread/unarchive")
    async with mcp.stage(tmp_path) as here:
        async with here.server("mcp", env=env) as client:
            await client.content("codex", prompt="%say before", identity="dev")
            closing = client.start("agent_close", identity="dev")
            await wait_made(mark)
            if killed == "laneway":
                await kill_whole(client.process)
            else:
                shoot_codex(client.process.pid)
            await asyncio.gather(closing, return_exceptions=True)
        assert len(archived(here)) == 1
        async with here.server("mcp-server", env=env) as client:
            await client.content("codex", prompt="%say of something else")
            await until(lambda: not archived(here))


async def test_what_the_user_archived_stays_archived(tmp_path: Path) -> None:
    """Neither listed nor opened: the user is told how to have it back."""
    env = own_state(tmp_path)
    async with acp.stage(tmp_path) as here:
        async with here.agent(env=env) as client:
            session = await client.new()
            await client.prompt(session, "%say before")
            await client.ask("session/close", {"sessionId": session})
        archive = await here.spawn("-c", ARCHIVE, locate.find().path, session.removeprefix("sess_"))
        assert await archive.wait() == 0
        async with here.agent(env=env) as client:
            assert await listed(client) == set()
            where = {"sessionId": session, "cwd": str(here.work), "mcpServers": []}
            for method in ("session/load", "session/resume"):
                assert "archived" in (await client.refusal(method, where))["message"]
            assert await listed(client) == set()
        assert len(archived(here)) == 1


ARCHIVE = "import os, sys; os.execv(sys.argv[1], ['codex', 'archive', sys.argv[2]])"
"""As the user would."""


# ── at any instant ─────────────────────────────────────────────────────────


async def some_moment(here: Scene, chance: random.Random) -> None:
    """When something is archived, or at any other instant of a release."""
    clock = asyncio.get_running_loop()
    end = clock.time() + chance.uniform(0, RELEASE_S)
    is_aimed = chance.random() < 0.5
    while clock.time() < end and not (is_aimed and archived(here)):
        await asyncio.sleep(INSTANT_S)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("killed", ["laneway", "codex"])
async def test_whenever_it_is_killed_an_editor_finds_every_session(tmp_path: Path, killed: str) -> None:
    """Listed and loaded, by the same agent if it lives, else by the next."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    env = own_state(tmp_path)
    hits = 0
    sessions: set[str] = set()
    async with acp.stage(tmp_path) as here:
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.agent(env=env) as client:
                assert await listed(client) == sessions, where
                assert archived(here) == [], where
                session = await client.new()
                await client.prompt(session, "%say before")
                sessions.add(session)
                closing = client.request("session/close", {"sessionId": session})
                await some_moment(here, chance)
                if killed == "codex":
                    shoot_codex(client.process.pid)
                    assert await closing == {}, where
                    hits += len(archived(here))
                    await client.load(session)
                else:
                    await kill_whole(client.process)
                    await asyncio.gather(closing, return_exceptions=True)
                    hits += len(archived(here))
        print(f"{hits} of {ROUNDS} kills left a thread archived")
        async with here.agent(env=env) as client:
            assert await listed(client) == sessions, f"seed {seed}"
            assert archived(here) == [], f"seed {seed}"
            for session in sessions:
                await client.load(session)
                assert client.messages(session) == ["before"], f"seed {seed}"
            await wait_finished(tmp_path)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("killed", ["laneway", "codex"])
async def test_whenever_it_is_killed_the_next_server_goes_on_with_the_session(
    tmp_path: Path, killed: str
) -> None:
    """One named session, closed and had back again and again."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    env = own_state(tmp_path)
    hits = 0
    async with mcp.stage(tmp_path) as here:
        async with here.server("mcp", env=env) as client:
            began = await client.content("codex", prompt="%say before", identity="dev")
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.server("mcp", env=env) as client:
                again = await client.content("codex", prompt=f"%say {number}", agent_id=began["agent_id"])
                assert again["content"] == str(number), where
                assert again["threadId"] == began["threadId"], where
                assert archived(here) == [], where
                closing = client.start("agent_close", identity="dev")
                await some_moment(here, chance)
                if killed == "codex":
                    shoot_codex(client.process.pid)
                else:
                    await kill_whole(client.process)
                await asyncio.gather(closing, return_exceptions=True)
                hits += len(archived(here))
        print(f"{hits} of {ROUNDS} kills left a thread archived")
        async with here.server("mcp", env=env) as client:
            again = await client.content("codex", prompt="%say last", agent_id=began["agent_id"])
            assert again["content"] == "last", f"seed {seed}"
            assert archived(here) == [], f"seed {seed}"
            await wait_finished(tmp_path)


async def wait_finished(folder: Path) -> None:
    """Until no release is written down as begun."""
    await until(lambda: not os.listdir(folder / "state" / "laneway" / "releases"))
