"""Point 5 below the surface: who cancels a turn stops its subagents, too."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.doors.acp.shared import Shared
from tests.doors.acp.support import text
from tests.doors.acp.telling import Gates
from tests.doors.acp.test_point_09_mcp_results import show_all_tools

BELOW = "%run echo below; read x < gate-0"
PROMPT = f'%tool spawn_agent {{"message": "{BELOW}"}}\n%run read x < gate-1'


@pytest.mark.needs("subagents")
async def test_the_command_of_a_subagent_ends_with_the_turn_that_was_cancelled(shared: Shared) -> None:
    """Both calls have ended when the prompt is answered or soon after; neither gate was ever opened."""
    async with shared.stage(show_all_tools) as here:
        with closing(Gates(here.work)) as gates:
            gates.new(), gates.new()
            async with here.agent() as client:
                session = await client.new()
                going = client.start_prompt(session, PROMPT)
                for command in ("echo below", "gate-1"):
                    await client.wait_update(
                        lambda each, command=command: (
                            each.kind == "tool_call"  # type: ignore[misc]
                            and command in each.body["title"]
                            and each.body["kind"] == "execute"
                        )
                    )
                client.cancel(session)
                assert await going == {"stopReason": "cancelled"}
                await client.wait_update(lambda each: client.open_tool_calls() == {})
                ran = [call for call in client.tool_calls().values() if call["kind"] == "execute"]
                assert [text(call["content"][-1]) for call in ran] == ["Interrupted.", "Interrupted."]
