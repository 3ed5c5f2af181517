"""Point 13: Codex dies. The turn fails honestly, the next prompt resumes, and access stays what it was."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from laneway.testing.processes import wait_gone
from tests.doors.acp.golden import golden
from tests.doors.acp.support import Client, stage
from tests.doors.acp.telling import Gates
from tests.doors.acp.witness import INSIDE, choose, codex_of, configure, refused, tried
from tests.wire.support import linux_only

ENDED = {"stopReason": "end_turn"}

pytestmark = linux_only


async def kill(client: Client) -> None:
    pid = codex_of(client)
    os.kill(pid, signal.SIGKILL)
    await wait_gone(pid)


async def test_a_turn_whose_codex_dies_fails_and_what_waits_behind_it_is_served(tmp_path: Path) -> None:
    """Its call has an end; a new Codex knows the conversation."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        await client.prompt(session, "%say Remember this.")
        with closing(Gates(here.work)) as made:
            going = client.start_prompt(session, f"%run read x < {made.new().name}\n%say Went.")
            await client.wait_kind("tool_call", session)
            behind = client.start_prompt(session, "%say Behind.")
            await kill(client)
            error = await refused(going)
        assert (error["code"], error["data"]["kind"]) == (-32603, "engine_lost")
        assert "SIGKILL" in error["message"]
        assert client.open_tool_calls() == {}
        assert await behind == ENDED
        assert "Remember this." in str(here.requests[-1]["input"])
        assert client.messages(session) == ["Remember this.", "Behind."]
    golden("point-13-codex-dies", client.trace(without=("usage_update",)))


@pytest.mark.parametrize("command", ["/undo", "/mcp", "/plan on", "/compact", "/status"])
async def test_a_command_does_not_miss_a_codex_that_died_while_nothing_ran(
    tmp_path: Path, command: str
) -> None:
    """Also one that starts no turn."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        await client.prompt(session, "%say Before.")
        await kill(client)
        assert await client.prompt(session, command) == ENDED
        assert await client.prompt(session, "%say After.") == ENDED
        assert client.messages(session)[-1] == "After."


async def test_a_codex_that_dies_while_nothing_runs_is_not_missed(tmp_path: Path) -> None:
    """Every session of it goes on with the next prompt, with its mode and nothing more."""
    async with stage(tmp_path) as here, here.agent() as client:
        plain, code, fresh = await client.new(), await client.new(), await client.new()
        await choose(client, code, "mode", "code")
        for session in (plain, code):
            await client.prompt(session, "%say Before.")
        # Wider than anything that a session of ours had: a new Codex reads it, and must not go by it.
        configure(here, 'sandbox_mode = "danger-full-access"\napproval_policy = "never"')
        await kill(client)
        assert await tried(here, client, plain) == set()
        assert await tried(here, client, code) == {INSIDE}
        assert await tried(here, client, fresh) == set()
        await kill(client)
        assert await client.prompt(code, "%say Again.") == ENDED
        await kill(client)
        assert await client.prompt(await client.new(), "%say New.") == ENDED
        await kill(client)
        assert len((await client.ask("session/list", {}))["sessions"]) == 4


async def test_a_session_whose_empty_thread_was_lost_goes_by_its_id_in_another(tmp_path: Path) -> None:
    """Codex keeps nothing of a thread that had no turn: the first prompt begins one, for good."""
    async with stage(tmp_path) as here:
        async with here.agent() as client:
            session = await client.new()
            await choose(client, session, "mode", "code")
            await kill(client)
            assert await client.prompt(session, "%run touch inside\n%say First.") == ENDED
            assert (here.work / "inside").exists()
            (call_id,) = client.tool_calls(session)
            assert call_id.split(":")[1] not in session
        async with here.agent() as client:
            (shown,) = (await client.ask("session/list", {}))["sessions"]
            assert shown["sessionId"] == session
            await client.load(session)
            assert client.messages(session) == ["First."]
            assert await client.prompt(session, "%run touch again\n%say Second.") == ENDED
            assert (here.work / "again").exists()
            assert "First." in str(here.requests[-1]["input"])
            await client.ask("session/close", {"sessionId": session})
            await client.ask("session/delete", {"sessionId": session})
            assert (await client.ask("session/list", {}))["sessions"] == []
            where = {"sessionId": session, "cwd": str(here.work), "mcpServers": []}
            assert (await client.refusal("session/load", where))["code"] == -32002


async def test_a_question_whose_codex_died_is_taken_back(tmp_path: Path) -> None:
    """The prompt fails; the answer that comes all the same harms nobody."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        client.on_permission = lambda params: None
        going = client.start_prompt(session, "%run! touch ../outside\n%say After.")
        asked = await client.wait_asked("session/request_permission")
        await kill(client)
        assert (await refused(going))["data"]["kind"] == "engine_lost"
        back = await client.wait_heard(lambda each: each["method"] == "$/cancel_request")
        assert back["params"] == {"requestId": asked["id"]}
        client.answer(asked, {"outcome": {"outcome": "selected", "optionId": "accept"}})
        assert await client.prompt(session, "%say Next.") == ENDED
        assert client.open_tool_calls() == {}
        assert not (here.home.parent / "outside").exists()
