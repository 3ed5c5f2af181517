"""The real agent, told apart by what its client declared: all of them see all of it, within the protocol."""

from __future__ import annotations

import pytest

from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, ZED, Message, select

PROMPTS = (
    "%think Hm.\n%say Hello.",
    "%run echo one\n%say Ran.",
    "%run! echo two\n%say Allowed.",
    "%patch a.txt x\\ny\n%say Added.",
    "%edit a.txt x => z\n%say Edited.",
    "%plan Look; Leap\n%say Planned.",
)


async def day(shared: Shared, capabilities: Message) -> list[Message]:
    """A bit of everything; the trace of it. The stage holds every message against the schema."""
    async with shared.stage() as here, here.agent(capabilities=capabilities) as client:
        client.on_permission = lambda params: select(params, "allow_once")
        session = await client.new()
        ends = [(await client.prompt(session, prompt))["stopReason"] for prompt in PROMPTS]
        assert ends == ["end_turn"] * len(PROMPTS)
        assert client.messages(session) == ["Hello.", "Ran.", "Allowed.", "Added.", "Edited.", "Planned."]
        assert client.text(session, "agent_thought_chunk") == "Hm."
        calls = client.tool_calls(session).values()
        assert [call["kind"] for call in calls] == ["execute", "execute", "edit", "edit"]
        assert {call["status"] for call in calls} == {"completed"}
        assert (here.work / "a.txt").read_text() == "z\ny\n"
        return client.trace()


@pytest.mark.parametrize("capabilities", [{}, FULL, ZED], ids=["bare", "full", "zed"])
async def test_a_day_with_any_client_keeps_to_the_protocol(shared: Shared, capabilities: Message) -> None:
    """And is told the same way twice: a trace holds nothing that is chance."""
    assert await day(shared, capabilities) == await day(shared, capabilities)
