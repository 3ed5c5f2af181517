"""The end of the server: every session sums up, within one deadline, and nothing is left (FR-7, FR-3.2)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from laneway.core.named.closer import SUMMARY_PROMPT
from laneway.rehearsal.answer import Forever
from laneway.testing.processes import wait_gone
from tests.core.support import until
from tests.doors.mcp.support import DEADLINE_S, stage
from tests.doors.mcp.views import hanging, registry, states, texts, without_summaries


@pytest.mark.covers("FR-7.1", "FR-7.3", "FR-7.4", "FR-6.4", "FR-1.3")
@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT", "EOF", "both"])
async def test_however_it_ends_every_session_sums_up_and_codex_is_gone(tmp_path: Path, end: str) -> None:
    """Also one in the middle of a turn, whose caller is told."""
    async with stage(tmp_path) as here, here.server("mcp") as client:
        done = await client.content("codex", prompt="%say x", identity="done")
        agent_id, running = await hanging(client, identity="busy")
        pid = (await client.content("agent_status"))["child_pid"]
        if end == "EOF":
            await client.hang_up()
        else:
            # Claude Code sends one signal and at once the other: that is one wish.
            for name in ("SIGINT", "SIGTERM") if end == "both" else (end,):
                client.process.send_signal(getattr(signal, name))
            assert await client.process.wait() == 0
        assert (await running)["error"]["code"] == -32003
        await wait_gone(pid)

        asked = [request for request in here.requests if SUMMARY_PROMPT in texts(request)]
        assert len(asked) == 2
        for identity, session in (("done", done["agent_id"]), ("busy", agent_id)):
            (entry,) = registry(here, identity)
            assert (entry["agent_id"], entry["status"]) == (session, "closed")
            folder = here.sessions / "default" / identity / entry["backend_id"]
            assert (folder / "summary.md").read_text().strip()


@pytest.mark.covers("FR-7.1", "FR-7.2")
async def test_a_second_signal_ends_it_at_once_and_what_owed_a_summary_can_be_had_back(
    tmp_path: Path,
) -> None:
    """A model that never sums up does not hold anybody who insists."""
    async with stage(tmp_path, answerer=without_summaries(Forever())) as here:
        async with here.server("mcp") as client:
            session = await client.content("codex", prompt="%say x", identity="dev")
            pid = (await client.content("agent_status"))["child_pid"]
            client.process.send_signal(signal.SIGINT)
            while SUMMARY_PROMPT not in texts(here.requests[-1]):
                await asyncio.sleep(0)
            client.process.send_signal(signal.SIGINT)
            assert await client.process.wait() == 130
            await wait_gone(pid)
        async with here.server("mcp") as client:
            assert await states(client) == {session["agent_id"]: ("stale", "closed")}


@pytest.mark.covers("FR-3.2", "FR-6.3", "NFR-2")
async def test_after_a_kill_its_sessions_are_stale_and_a_reply_has_them_back(tmp_path: Path) -> None:
    """Nothing is rewritten by looking; the missing summary is no obstacle."""
    async with stage(tmp_path) as here:
        async with here.server("mcp") as client:
            session = await client.content("codex", prompt="%say x", identity="dev")
            pid = (await client.content("agent_status"))["child_pid"]
            client.process.kill()
            await client.process.wait()
            await wait_gone(pid)
        before = registry(here, "dev")
        async with here.server("mcp", "--log-level", "warning") as client:
            (row,) = (await client.content("agent_sessions"))["sessions"]
            assert (row["status"], row["resumable"]) == ("stale", True)
            assert registry(here, "dev") == before
            back = await client.content("codex-reply", prompt="%say back", agent_id=session["agent_id"])
            assert await states(client) == {session["agent_id"]: ("active", "idle")}
            await client.aclose()
            assert "There is no summary" in client.stderr

    assert (back["content"], back["threadId"]) == ("back", session["threadId"])


@pytest.mark.covers("FR-7.4", "NFR-2")
async def test_a_client_that_no_longer_reads_or_writes_is_one_that_hung_up(tmp_path: Path) -> None:
    """The writing end breaks in the middle of a turn: a write that fails ends the server in order."""
    async with stage(tmp_path) as here:
        reading, writing = os.pipe()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "laneway", "mcp"),
            stdin=PIPE,
            stdout=writing,
            stderr=PIPE,
            env=here.environment,
            cwd=here.work,
        )
        os.close(writing)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
            b'"params":{"name":"codex","arguments":{"prompt":"%say x","identity":"dev"}}}\n'
        )
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not here.requests:
                    await asyncio.sleep(0)
                os.close(reading)
                stderr = await process.stderr.read()
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            process.stdin.close()
        assert b"Traceback" not in stderr
        assert registry(here, "dev")[0]["status"] in ("closed", "interrupted")


@pytest.mark.parametrize("setting", ["summaries", "persist_threads"])
async def test_summaries_are_asked_for_only_where_they_are_wanted_and_can_be_used(
    tmp_path: Path, setting: str
) -> None:
    """`summaries = false`; or sessions that cannot be had back anyway."""
    async with stage(tmp_path) as here:
        async with here.server("mcp", env={f"LANEWAY_{setting.upper()}": "false"}) as client:
            session = await client.content("codex", prompt="%say x", identity="dev")
        assert not any(SUMMARY_PROMPT in texts(request) for request in here.requests)
        async with here.server("mcp") as client:
            (row,) = (await client.content("agent_sessions"))["sessions"]
            back = await client.call("codex", prompt="%say back", agent_id=session["agent_id"])

    is_kept = setting == "summaries"
    assert row["resumable"] is is_kept
    assert ("result" in back) is is_kept


@pytest.mark.parametrize("end", ["SIGTERM", "EOF"])
@pytest.mark.parametrize("words", [("mcp",), ("mcp-server",), ("mcp", "--backend", "mcp-server")])
async def test_calls_that_wait_for_a_codex_that_says_nothing_start_one_and_no_other(
    tmp_path: Path, words: tuple[str, ...], end: str
) -> None:
    """One of them is given up by its client, then the server ends: the others start none of their own."""
    mute, starts = tmp_path / "codex", tmp_path / "starts"
    mute.write_text(f'#!/bin/sh\necho "$1" >> {starts}\nexec cat > /dev/null\n')
    mute.chmod(0o755)
    env = {"LANEWAY_CODEX_BIN": str(mute), "LANEWAY_LOG_LEVEL": "debug"}
    async with stage(tmp_path) as here, here.server(*words, env=env) as client:
        given_up, *others = [client.start("codex", prompt=f"%say {number}") for number in range(3)]
        # Were it given up before the others wait, the start would end with it, and rightly.
        await until(lambda: client.stderr.count("waits for Codex to start") == 3)
        client.tell("notifications/cancelled", {"requestId": client.last_id - 2})
        await client.ask("ping")  # behind the cancel
        if end == "EOF":
            await client.hang_up()
        else:
            client.process.send_signal(signal.SIGTERM)
            assert await client.process.wait() == 0
        await asyncio.gather(*others, return_exceptions=True)
        given_up.cancel()
    assert [word for word in starts.read_text().split() if word.endswith("-server")] in (
        ["app-server"],
        ["mcp-server"],
    )
