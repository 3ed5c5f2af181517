"""Point 12: a large session loads in pages, with a budget for each tool call; its newest turn is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from laneway.doors.acp.history.past_updates import CALL_BYTES
from laneway.doors.acp.history.replay import TURNS_A_PAGE
from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, ZED, Client, Message, Stage, stage, text
from tests.doors.acp.witness import said_to_codex, tapped

LINES = 2500
"""Of a long output: 30 KB, which is more than a call's budget, and less than Codex keeps."""
LONG = f"%run seq 10000001 {10000000 + LINES}\n%say Counted."


async def lived(here: Stage, client: Client, short: int) -> str:
    """A session with a long output at its beginning, short turns, and a long output at its end."""
    session = await client.new()
    for prompt in (LONG, *(f"%say Short {number}." for number in range(short)), LONG):
        assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
    return session


async def test_it_is_told_page_by_page_from_the_first_turn_on(tmp_path: Path) -> None:
    """Everything that was said is there before the answer; Codex is asked for some turns at a time."""
    log = tmp_path / "log"
    short = TURNS_A_PAGE
    async with stage(tmp_path) as here:
        async with here.agent() as client:
            session = await lived(here, client, short)
            live = list(client.tool_calls().values())
        async with here.agent(env=tapped(here, log)) as client:
            await client.load(session)
            count = len(client.updates)
            said = client.messages(session)
            asked = client.messages(session, "user_message_chunk")
            calls = list(client.tool_calls().values())
            assert await client.prompt(session, "%say And on.") == {"stopReason": "end_turn"}
            assert client.messages(session)[-1] == "And on."
        assert said == ["Counted.", *(f"Short {number}." for number in range(short)), "Counted."]
        assert asked[0] == asked[-1] == LONG
        assert len(asked) == short + 2
        pages = said_to_codex(log, "thread/turns/list")
        assert [page["limit"] for page in pages] == [TURNS_A_PAGE] * 2
        assert client.updates[count - 1].kind == "available_commands_update"

    (older, newest) = calls
    assert len(json.dumps(older)) <= CALL_BYTES < len(json.dumps(newest))
    assert "10000001" in text(older["content"])
    assert text(newest["content"]) == text(live[1]["content"])
    assert text(newest["content"]).count("\n") == LINES + 1
    assert [call["status"] for call in calls] == ["completed"] * 2


@pytest.mark.parametrize(
    ("name", "capabilities"), [("bare", {}), ("full", FULL), ("zed", ZED)], ids=["bare", "full", "zed"]
)
async def test_every_kind_of_thing_comes_back(shared: Shared, name: str, capabilities: Message) -> None:
    """For every client alike: no terminal is named for what is long over."""
    picture = {"type": "image", "mimeType": "image/png", "data": PNG}
    async with shared.stage() as here:
        async with here.agent() as client:
            session = await client.new()
            await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
            await client.prompt(session, [{"type": "text", "text": "%say Seen."}, picture])
            await client.prompt(session, "%think Hm.\n%run echo one; exit 3\n%patch a.txt x\\ny\n%say Done.")
            await client.refusal(
                "session/prompt",
                {"sessionId": session, "prompt": [{"type": "text", "text": "%fail 400 No."}]},
            )
        async with here.agent(capabilities=capabilities) as client:
            await client.load(session)
    assert client.messages(session)[:2] == ["Seen.", "Done."]
    assert "The turn failed" in client.messages(session)[2]
    assert client.text(session, "agent_thought_chunk") == "Hm."
    (command, edit) = client.tool_calls().values()
    assert (command["status"], edit["status"], edit["kind"]) == ("failed", "completed", "edit")
    assert "one" in text(command["content"])
    images = [body for body in client.of("user_message_chunk") if body["content"]["type"] == "image"]
    assert [body["content"]["data"] for body in images] == [PNG]
    assert "terminal" not in str(client.tool_calls())
    golden(f"point-12-large-session-{name}", client.trace())


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
