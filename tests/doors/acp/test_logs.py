"""What the logs of the ACP door carry: every id, and how long things took."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.doors.acp.support import stage


async def test_a_prompt_and_its_tool_calls_can_be_followed_through_the_logs(tmp_path: Path) -> None:
    """Structured lines with session, thread, turn, item, tool call, method and latency."""
    file = tmp_path / "acp.log"
    words = ("--log-level", "debug", "--log-format", "json", "--log-file", str(file))
    async with stage(tmp_path / "state") as here, here.agent(*words) as client:
        session = await client.new()
        await client.prompt(session, "%run echo hello")
        (call_id,) = client.tool_calls(session)
    lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    thread = session.removeprefix("sess_")

    told = [line for line in lines if call_id in line["message"]]
    assert [line["message"].rpartition(" ")[2] for line in told] == ["running", "completed"]
    for line in told:
        assert call_id == f"codex:{thread}:{line['turn']}:{line['item']}"
        assert (line["session"], line["thread"]) == (session, thread)

    (prompt,) = [line for line in lines if line["message"].startswith("session/prompt ")]
    assert (prompt["session"], prompt["thread"]) == (session, thread)
    assert prompt["request"]
    assert prompt["latency_ms"] > 0
    assert any(line["message"].startswith("turn/start ") and line["latency_ms"] > 0 for line in lines)
