"""`--resume`: the first call goes on with a session of before (FR-6)."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.doors.mcp.support import stage
from tests.doors.mcp.views import QUIET, texts


@pytest.mark.covers("FR-6.1", "FR-6.2", "FR-13.3")
async def test_the_first_call_goes_on_with_the_session_that_was_meant_and_only_that_one(
    tmp_path: Path,
) -> None:
    """Without an id the latest of the identity; the summary stands in front of its first turn only."""
    async with stage(tmp_path) as here:
        async with here.server("mcp") as client:
            named = await client.content("codex", prompt="%say first", identity="dev")
            await client.content("codex", prompt="%say other")
        summary = "I heard “This session is about to be closed"
        async with here.server("mcp", "--identity", "dev", "--resume", env=QUIET) as client:
            back = await client.content("codex", prompt="%say back")
            resumed = texts(here.requests[-1])
            await client.content("codex-reply", prompt="%say more", agent_id=back["agent_id"])
            later = texts(here.requests[-1])
            fresh = await client.content("codex", prompt="%say fresh")
        assert (back["agent_id"], back["threadId"]) == (named["agent_id"], named["threadId"])
        for words in (resumed, later):
            assert sum("last closed" in text and summary in text for text in words) == 1
        position = next(number for number, text in enumerate(resumed) if "last closed" in text)
        assert resumed.index("%say back") > position
        assert fresh["agent_id"] != named["agent_id"]
        async with here.server("mcp", "--resume", fresh["agent_id"], env=QUIET) as client:
            chosen = await client.content("codex", prompt="%say chosen")

    assert chosen["agent_id"] == fresh["agent_id"]


@pytest.mark.covers("FR-6.2", "FR-13.3")
@pytest.mark.parametrize("words", [["--resume"], ["--resume", "agent-0"], ["--identity", "x", "--resume"]])
async def test_what_cannot_be_resumed_is_said_at_the_start(tmp_path: Path, words: list[str]) -> None:
    """Not at the first call, which may come much later."""
    async with stage(tmp_path) as here, here.server("mcp", *words, greet=False) as client:
        assert await client.process.wait() == 2
        await client.aclose()

    assert "There is no session" in client.stderr
    assert "laneway sessions" in client.stderr


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write"])
async def test_a_resumed_session_may_do_no_more_than_before(tmp_path: Path, sandbox: str) -> None:
    """Although config.toml grants everything, and Codex takes its sandbox from there for a new process."""
    # Every sandbox that writes may write below the system's temporary folder; nobody's home is there.
    with TemporaryDirectory(dir=Path.home()) as folder:
        prompt = f"%run touch {folder}/mark\n%say tried"
        async with stage(tmp_path) as here:
            grant_everything(here.home / "config.toml")
            async with here.server("mcp", env=QUIET) as client:
                named = await client.content("codex", prompt=prompt, sandbox=sandbox, cwd=str(here.work))
                assert os.listdir(folder) == []
            async with here.server("mcp", env=QUIET) as client:
                back = await client.content("codex", prompt=prompt, agent_id=named["agent_id"])
                assert (back["threadId"], os.listdir(folder)) == (named["threadId"], [])
                await client.content("codex", prompt=prompt)
                assert os.listdir(folder) == ["mark"], "a session that asks for no sandbox has config.toml's"


def grant_everything(config: Path) -> None:
    wide = 'sandbox_mode = "danger-full-access"\napproval_policy = "never"\n'
    config.write_text(wide + config.read_text())
