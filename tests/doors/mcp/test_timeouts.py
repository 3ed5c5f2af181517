"""A call that takes too long is stopped and says how far it came; a budget does the same (FR-14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.doors.mcp.support import stage
from tests.doors.mcp.views import QUIET, audit, configure, states


@pytest.mark.covers("FR-14.1", "FR-14.2", "FR-14.3", "NFR-6/-32006")
@pytest.mark.parametrize("by", ["flag", "setting"])
async def test_a_call_over_its_time_returns_what_there_is_and_the_session_goes_on(
    tmp_path: Path, by: str
) -> None:
    """The turn is interrupted at Codex, not forgotten; the next call finds an idle session."""
    async with stage(tmp_path) as here:
        words = ["--timeout", "3"] if by == "flag" else []
        if by == "setting":
            configure(here, "[plugins.atm-agent-mcp]\nrequest_timeout_secs = 3\n")
        async with here.server("mcp", *words, env=QUIET) as client:
            error = await client.error("codex", prompt="%say as far as this\n%hang", identity="dev")
            agent_id = error["data"]["agent_id"]
            assert await states(client) == {agent_id: ("active", "idle")}
            after = await client.content("codex-reply", prompt="%say after", agent_id=agent_id)
            await client.hang_up()
        outcomes = [line["outcome"] for line in audit(here) if line["event_type"] == "turn_done"]

    assert error["code"] == -32006
    assert error["data"]["error_source"] == "proxy"
    assert error["data"]["partial"] == "as far as this"
    assert "as far as this" in error["message"]
    assert after["content"] == "after"
    assert outcomes == ["interrupted by timeout", "completed"]


@pytest.mark.parametrize(
    ("flags", "what"), [(["--max-turns", "2"], "turns"), (["--max-tokens", "150"], "tokens")]
)
async def test_a_session_that_has_spent_its_budget_says_so(
    tmp_path: Path, flags: list[str], what: str
) -> None:
    """Others are not touched by it."""
    async with stage(tmp_path) as here, here.server("mcp", *flags, env=QUIET) as client:
        session = await client.content("codex", prompt="%say one")
        spent: dict[str, Any] = {}
        for _ in range(2):
            answer = await client.call("codex-reply", prompt="%say more", agent_id=session["agent_id"])
            spent = answer.get("error", spent)
        other = await client.content("codex", prompt="%say other")

    assert spent["code"] == -32010
    assert what in spent["message"] or "budget" in spent["message"]
    assert other["content"] == "other"
