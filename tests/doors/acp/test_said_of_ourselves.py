"""What the client is told that no model said: changes of the mode, and messages of our own."""

from __future__ import annotations

from pathlib import Path

from tests.doors.acp.support import stage


async def test_a_change_of_mode_is_told_in_the_other_way_than_it_was_made(tmp_path: Path) -> None:
    """Clients know modes, or options, or both: each hears of a change that it did not make itself."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "ask"})
        (told,) = client.of("config_option_update", session)
        modes = [option["currentValue"] for option in told["configOptions"] if option["id"] == "mode"]
        assert modes == ["ask"]
        assert client.of("current_mode_update", session) == []

        params = {"sessionId": session, "configId": "mode", "value": "code"}
        await client.ask("session/set_config_option", params)
        assert client.of("current_mode_update", session) == [{"currentModeId": "code"}]
        assert len(client.of("config_option_update", session)) == 1

        await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
        assert len(client.of("config_option_update", session)) == 1  # nothing has changed


async def test_every_message_has_an_id_also_those_that_no_model_said(tmp_path: Path) -> None:
    """The answers of commands and warnings are messages of their own, and never run into others."""
    async with stage(tmp_path) as here, here.agent() as client:
        session = await client.new()
        for prompt in ("%think Hm.\n%say Hello.", "/help", "/no-such-command", "/compact"):
            await client.prompt(session, prompt)
        chunks = client.of("agent_message_chunk", session) + client.of("agent_thought_chunk", session)
        assert all(chunk["messageId"] for chunk in chunks)
        ours = [chunk["messageId"] for chunk in chunks if chunk["messageId"].startswith("laneway-")]
        assert len(set(ours)) == len(ours) >= 3  # two commands, and Codex's warning after a compaction
