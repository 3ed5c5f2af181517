"""Codex dies: everybody who waits is told how, and so is everybody after (FR-11)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from laneway.testing.processes import wait_gone
from tests.doors.mcp.support import stage
from tests.doors.mcp.views import QUIET, hanging, states


@pytest.mark.covers("FR-11.1", "FR-11.2", "FR-11.3", "FR-10.2", "FR-1.3", "NFR-2", "NFR-6/-32005")
async def test_a_death_answers_what_is_open_and_what_comes_with_the_signal_until_the_client_reconnects(
    tmp_path: Path,
) -> None:
    """Nothing is started again within the connection; after it what Codex has kept can be had back."""
    async with stage(tmp_path) as here:
        async with here.server("mcp", env=QUIET) as client:
            idle = await client.content("codex", prompt="%say x", identity="idle")
            agent_id, running = await hanging(client, identity="busy")
            queued = client.start("codex-reply", prompt="%say late", agent_id=agent_id)
            pid = (await client.content("agent_status"))["child_pid"]
            os.kill(pid, signal.SIGKILL)
            open_calls = [(await call)["error"] for call in (running, queued)]
            await wait_gone(pid)
            later = [
                await client.error("codex-reply", prompt="%say x", agent_id=idle["agent_id"]),
                await client.error("codex", prompt="%say x"),
                await client.error("codex-reply", prompt="%say x", threadId=idle["threadId"]),
            ]
            health = await client.content("agent_status")
            assert "result" in await client.ask("ping", {})
            assert set(await states(client)) == {agent_id, idle["agent_id"]}
        async with here.server("mcp", env=QUIET) as client:
            back = await client.content("codex", prompt="%say back", agent_id=idle["agent_id"])

    for error in (*open_calls, *later):
        assert (error["code"], error["data"]["error_source"]) == (-32005, "proxy")
        assert "SIGKILL" in error["message"]
        assert "SIGKILL" in error["data"]["exit"]
    assert (health["child_alive"], health["child_pid"]) == (False, None)
    assert "SIGKILL" in health["child_ended"]
    assert back["content"] == "back"


@pytest.mark.covers("FR-11.2")
async def test_a_codex_that_ends_by_itself_is_told_with_its_exit_code(tmp_path: Path) -> None:
    """Not only signals: whatever `codex` is that was configured, its end is told."""
    broken = tmp_path / "codex"
    broken.write_text('#!/bin/sh\ncase "$1" in app-server) exit 7;; esac\necho codex-cli 0.163.0\n')
    broken.chmod(0o700)
    async with stage(tmp_path) as here, here.server("mcp", "--codex-bin", str(broken), env=QUIET) as client:
        errors = [await client.error("codex", prompt="%say x", identity="dev") for _ in range(2)]
        health = await client.content("agent_status")

    assert [error["code"] for error in errors] == [-32005] * 2
    assert "7" in errors[0]["message"]
    assert (health["child_alive"], health["identities"]) == (False, {})
