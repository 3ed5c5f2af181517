"""Point 1: what a command prints is visible to every client, and no terminal is named without being asked."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, ZED, Client, Message, Stage, text
from tests.doors.acp.telling import Gates, only_call, printed, story, told

STORY = "%run read x < gate-0; echo first; read x < gate-0; echo second >&2; exit 3\n%say Ran."
OUTPUT = "first\nsecond\n"
REAL_TERMINALS: Message = {"terminal": True}
"""A client with terminals of its own, which knows nothing of ours."""


async def run(here: Stage, client: Client) -> str:
    """The story: a line, a wait in which it must be seen, another line, a bad end. The call's id."""
    with closing(Gates(here.work)) as gates:
        gate = gates.new()
        going = client.start_prompt(await client.new(), STORY)
        call_id: str = (await client.wait_kind("tool_call")).body["toolCallId"]
        gate.go()
        await client.wait_update(
            lambda each: each.kind == "tool_call_update" and r"first\n" in str(each.body)
        )
        assert only_call(client)["status"] == "in_progress"
        gate.go()
        assert await going == {"stopReason": "end_turn"}
    return call_id


@pytest.mark.parametrize(
    ("name", "capabilities"),
    [("bare", {}), ("full", FULL), ("terminals", REAL_TERMINALS)],
    ids=["bare", "full", "terminals"],
)
async def test_output_is_content_for_a_client_that_knows_no_terminal_of_ours(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """While it runs and when it is done; a client's own terminals are not used, and none is named."""
    async with shared.stage() as here, here.agent(capabilities=capabilities) as client:
        call_id = await run(here, client)
    call = only_call(client)
    assert text(call["content"]) == f"```\n{OUTPUT}```Exit code 3."
    assert (call["status"], call["kind"], "rawOutput" in call) == ("failed", "execute", False)
    assert not [update for update in told(client, call_id) if "_meta" in update or "terminal" in str(update)]
    assert client.asked == []
    golden(f"point-01-output-visible-{name}", story(client))


async def test_output_goes_to_the_terminal_of_a_client_that_shows_ours(shared: Shared) -> None:
    """By `_meta`, under the id of the call: begun, filled, ended; the text is not told a second time."""
    async with shared.stage() as here, here.agent(capabilities=ZED) as client:
        call_id = await run(here, client)
    updates = told(client, call_id)
    assert updates[0]["_meta"] == {"terminal_info": {"terminal_id": call_id, "cwd": str(here.work)}}
    assert printed(updates) == OUTPUT
    assert updates[-1]["_meta"]["terminal_exit"] == {"terminal_id": call_id, "exit_code": 3, "signal": None}
    shown = only_call(client)["content"]
    assert shown[0] == {"type": "terminal", "terminalId": call_id}
    assert text(shown[1:]) == "Exit code 3."
    assert client.asked == []
    golden("point-01-output-visible-zed", story(client))
