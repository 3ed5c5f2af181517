"""Real `laneway mcp` servers, reached from another terminal."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from laneway.app.local_socket import local_socket
from tests.cli.support import laneway
from tests.cli.watching import places, watching
from tests.core.named.support import stage as sessions_stage
from tests.doors.mcp.support import event_kind, stage


async def test_a_real_server_is_watched_and_stopped_and_its_caller_is_answered(
    tmp_path: Path, run: Path
) -> None:
    """A command that would run for an hour; then the session is closed, and the server goes on."""
    async with (
        stage(tmp_path) as here,
        here.server("mcp", env=places(run)) as client,
    ):
        env = {**places(run), "ATM_HOME": str(tmp_path)}
        call = client.start("codex", identity="ann", prompt="%run sleep 3600\n%say never")
        await client.wait_event("exec_command_begin")
        async with watching("ann", "--json", env=env) as there:
            stopped = await laneway("sessions", "stop", "ann", env=env)
            assert (stopped.code, stopped.out) == (0, "ann was stopped.\n")
            result = (await call)["result"]
            assert result["isError"]
            assert "the turn was interrupted" in result["content"][0]["text"]
            await there.wait_for(lambda: "turn_done" in there.kinds)
            assert [e["status"] for e in there.events if e["event"] == "turn_done"] == ["interrupted"]
            again = await client.content(
                "codex-reply", agent_id=there.events[0]["agent_id"], prompt="%say on"
            )
            assert again["content"] == "on"
            await there.wait_for(
                lambda: "on" in [e.get("text") for e in there.events if e["event"] == "text"]
            )
            closed = await laneway("sessions", "stop", "ann", "--close", env=env)
            assert closed.code == 0
            assert await there.ended() == 0
        assert await client.hang_up() == 0
        assert list((run / "laneway").iterdir()) == []


async def test_a_server_that_hangs_on_its_model_is_stopped(tmp_path: Path, run: Path) -> None:
    """The model says nothing at all."""
    async with (
        stage(tmp_path) as here,
        here.server("mcp", env=places(run)) as client,
    ):
        env = {**places(run), "ATM_HOME": str(tmp_path)}
        call = client.start("codex", identity="ann", prompt="%hang")
        await client.wait_heard(lambda message: event_kind(message) == "user_message")
        stopped = await laneway("sessions", "stop", "ann", "--json", env=env)
        assert json.loads(stopped.out)["is_stopped"] is True
        assert "the turn was interrupted" in (await call)["result"]["content"][0]["text"]


async def test_after_a_kill_the_socket_is_swept_and_the_session_is_stale(tmp_path: Path, run: Path) -> None:
    """Whoever watched is told; whoever comes next hears how to go on."""
    async with (
        stage(tmp_path) as here,
        here.server("mcp", env=places(run)) as client,
    ):
        env = {**places(run), "ATM_HOME": str(tmp_path)}
        agent_id = (await client.content("codex", identity="ann", prompt="hello"))["agent_id"]
        async with watching("ann", env=env) as there:
            client.process.kill()
            assert await there.ended() == 1
            assert f"The process of ann ({client.process.pid}) has ended." in there.err
        assert len(list((run / "laneway").iterdir())) == 1
        stale = await laneway("sessions", "watch", agent_id, env=env)
        assert stale.code == 2
        assert f"laneway mcp --identity ann --resume {agent_id}" in stale.err
        assert list((run / "laneway").iterdir()) == []


async def test_without_a_place_for_a_socket_the_sessions_go_on(
    tmp_path: Path, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says what is missing, and why."""
    for name in ("laneway", "state", "last"):
        (run / name).write_text("in the way")
    async with sessions_stage(tmp_path) as here:
        with caplog.at_level(logging.WARNING):
            async with local_socket(here.sessions, places(run)):
                ann = await here.open("ann")
                assert (await here.turn(ann, "work")).text == "done: work"
    (said,) = caplog.messages
    assert said.startswith("`laneway sessions watch` and `stop` cannot reach this process: No folder")
    assert str(run / "laneway") in said
