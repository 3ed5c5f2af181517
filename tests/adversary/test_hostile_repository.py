"""Repositories and state folders that want to freeze the server, or to have their programs run.

Against `laneway mcp` and `laneway acp` as real processes, with the real Codex and a scripted model.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.adversary.hostile_repository import STALLS, TRAPS, Hostile, filter_of_the_users_own
from tests.adversary.odd_files import UNREADABLE, Maker, folder, pipe
from tests.doors.acp import support as acp
from tests.doors.mcp import support as mcp
from tests.doors.mcp.views import QUIET

END_S = 20.0
"""For a server to be gone after its client; ten times what it needs on a slow machine."""


GROUPS = 4
"""Tests that the traps are shared out among: each has one agent for many repositories."""


async def ended(client: mcp.Client, how: str) -> int:
    """Its exit code, when it is told to end in this way."""
    async with asyncio.timeout(END_S):
        if how == "EOF":
            return await client.hang_up()
        client.process.send_signal(getattr(signal, how))
        return await client.process.wait()


# ── frozen by a file ───────────────────────────────────────────────────────


async def test_no_repository_freezes_a_server(tmp_path: Path) -> None:
    """Of MCP, told to end in either way, or an editor's. At the same time: Codex itself waits for a pipe."""
    for name in ("eof", "term", "editor"):
        (tmp_path / name).mkdir()
    await asyncio.gather(
        check_mcp_server(tmp_path / "eof", "EOF"),
        check_mcp_server(tmp_path / "term", "SIGTERM"),
        check_editor(tmp_path / "editor"),
    )


async def check_mcp_server(tmp_path: Path, how: str) -> None:
    """Others are answered while sessions are opened there, and the server ends when it is told to."""
    async with mcp.stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        await client.content("codex", prompt="%say first", identity="first")
        opening = []
        for stall in STALLS:
            folder = here.work / stall.__name__
            stall(folder)
            opening.append(client.start("codex", prompt="%say second", cwd=str(folder)))
        assert (await client.ask("ping"))["result"] == {}
        sessions = (await client.content("agent_sessions"))["sessions"]
        assert "first" in [session["identity"] for session in sessions]
        for answer in await asyncio.gather(*opening):
            assert answer["result"]["structuredContent"]["content"] == "second"
        assert (await client.ask("ping"))["result"] == {}
        assert await ended(client, how) == 0
        assert "Traceback" not in client.stderr


async def check_editor(tmp_path: Path) -> None:
    """Sessions are opened there and shown what has changed; another one is answered meanwhile."""
    async with acp.stage(tmp_path) as here, here.agent() as client:
        other = await client.new()
        folders = [here.work / stall.__name__ for stall in STALLS]
        for stall, folder in zip(STALLS, folders, strict=True):
            stall(folder)
        asked = {}
        for session in await asyncio.gather(*(client.new(folder) for folder in folders)):
            asked[session] = client.start_prompt(session, "/diff")
        assert await client.prompt(other, "%say hello") == {"stopReason": "end_turn"}
        for session, answer in asked.items():
            assert await answer == {"stopReason": "end_turn"}
            assert "seconds" not in client.messages(session)[-1]


# ── an odd store ───────────────────────────────────────────────────────────


async def test_odd_registries_are_named_and_the_other_sessions_are_listed(tmp_path: Path) -> None:
    """And whoever takes such an identity then works with it as with any other."""
    async with mcp.stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        await client.content("codex", prompt="%say x", identity="fine")
        odd = {}
        for make in UNREADABLE:
            identity = make.__name__.replace("_", "-")
            odd[identity] = here.sessions / "default" / identity / "registry.json"
            odd[identity].parent.mkdir(mode=0o700)
            make(odd[identity])
        listed = await client.content("agent_sessions")
        assert [session["identity"] for session in listed["sessions"]] == ["fine"]
        for path in odd.values():
            assert any(str(path) in problem for problem in listed["problems"])
        for identity in odd:
            await client.content("codex", prompt="%say x", identity=identity)
        listed = await client.content("agent_sessions")
        assert {session["identity"] for session in listed["sessions"]} == {"fine", *odd}
        assert await ended(client, "EOF") == 0
        assert "Traceback" not in client.stderr


@pytest.mark.parametrize("make", [pipe, folder], ids=lambda make: make.__name__)
async def test_whatever_the_audit_log_is_the_server_works_and_ends(tmp_path: Path, make: Maker) -> None:
    """What cannot be written there is told once in the log, and counted at the end."""
    async with mcp.stage(tmp_path) as here:
        team = here.sessions / "default"
        team.mkdir(parents=True)
        make(team / "audit.jsonl")
        async with here.server("mcp", env=QUIET) as client:
            for number in range(3):
                session = await client.content("codex", prompt="%say x", identity=f"dev-{number}")
                await client.content("agent_close", agent_id=session["agent_id"])
            assert await ended(client, "EOF") == 0
            assert client.stderr.count("Audit lines are not written") == 1
            assert client.stderr.count("Audit lines that were not written: ") == 1
            assert "Traceback" not in client.stderr


async def test_a_removed_lock_file_lets_no_second_server_take_the_name(tmp_path: Path) -> None:
    """The second is refused by name, and both go on."""
    async with mcp.stage(tmp_path) as here, here.server("mcp", env=QUIET) as first:
        session = await first.content("codex", prompt="%say x", identity="dev")
        for path in here.sessions.glob("default/*.lock"):
            path.unlink()
        async with here.server("mcp", env=QUIET) as second:
            assert (await second.error("codex", prompt="%say x", identity="dev"))["code"] == -32001
            await second.content("codex", prompt="%say x", identity="other")
        await first.content("codex-reply", prompt="%say y", agent_id=session["agent_id"])
        await first.content("agent_close", agent_id=session["agent_id"])
        assert (here.sessions / "default" / "dev.lock").exists()


# ── programs of a repository ───────────────────────────────────────────────


@pytest.mark.parametrize("group", range(GROUPS))
async def test_slash_commands_run_nothing_that_a_repository_brings(tmp_path: Path, group: int) -> None:
    """Neither to show what has changed, nor to find what to review, nor to take an edit back."""
    async with acp.stage(tmp_path / "state") as here:
        repositories = {}
        for trap in TRAPS[group::GROUPS]:
            (tmp_path / trap.name).mkdir()
            repositories[trap.name] = trap.set(tmp_path / trap.name)
        home = repositories.get(filter_of_the_users_own.__name__, next(iter(repositories.values())))
        env = {name: home.environment()[name] for name in ("HOME", "XDG_CONFIG_HOME")}
        async with here.agent(env=env) as client:
            for made in repositories.values():
                await check_commands(client, made)


async def check_commands(client: acp.Client, made: Hostile) -> None:
    """What Codex runs by itself is not ours to hinder: it asks git about its folder after an edit."""
    session = await client.new(made.root)
    await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
    for words in ("/diff", "/review-branch nowhere", "/review commit nothing"):
        assert await client.prompt(session, words) == {"stopReason": "end_turn"}
        assert made.was_run(but_by="codex") == "", words
    await client.prompt(session, "%edit tracked.txt changed => edited")
    assert (made.root / "tracked.txt").read_text() == "edited\n"
    await client.prompt(session, "/undo")
    assert made.was_run(but_by="codex") == ""
    assert (made.root / "tracked.txt").read_text() == "changed\n"
    assert "out of the files again: `tracked.txt`" in client.messages(session)[-1]
