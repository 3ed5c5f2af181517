"""What the client is told that no model said: changes of the mode, and messages of our own."""

from __future__ import annotations

from tests.doors.acp.answerers import odd_model
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Client, Message
from tests.doors.acp.test_point_04_failures import retry_once
from tests.doors.acp.witness import refused


async def test_a_change_of_mode_is_told_in_the_other_way_than_it_was_made(shared: Shared) -> None:
    """Clients know modes, or options, or both: each hears of a change that it did not make itself."""
    async with shared.stage() as here, here.agent() as client:
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


async def test_the_title_is_what_the_person_said_first(shared: Shared) -> None:
    """Neither a command nor what came along; and the list has the same one."""
    file = {"uri": "file:///a/b.py", "text": "secret = 1", "mimeType": "text/x-python"}
    words = {"type": "text", "text": "Explain this\n%say Well."}
    blocks: list[Message] = [{"type": "resource", "resource": file}, words]
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        await client.prompt(session, "/status")
        await client.prompt(session, "/no-such-command")
        assert client.of("session_info_update", session) == []
        await client.prompt(session, blocks)
        await client.prompt(session, "%say Something else.")
        (told,) = client.of("session_info_update", session)
        listed = (await client.ask("session/list", {}))["sessions"]
        assert told["title"] == "Explain this %say Well."
        titles = {each["sessionId"]: each.get("title") for each in listed}
        assert titles[session] == told["title"]


SAID = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")


def unnamed(client: Client) -> list[Message]:
    return [each.body for each in client.updates if each.kind in SAID and not each.body.get("messageId")]


async def test_every_message_has_an_id_also_those_that_no_model_said(shared: Shared) -> None:
    """Answers of commands, warnings, retries and failures are messages of their own, also when loaded."""
    prompts = ("%think Hm.\n%say Hello.", "/help", "/no-such-command", "/compact", "!cut 1\n%say Again.")
    async with shared.stage(retry_once, answerer=odd_model()) as here:
        async with here.agent() as client:
            session = await client.new()
            for prompt in prompts:
                await client.prompt(session, prompt)
            await refused(client.start_prompt(session, "%fail 400 No."))
        assert unnamed(client) == []
        chunks = client.of("agent_message_chunk", session) + client.of("agent_thought_chunk", session)
        ours = [chunk["messageId"] for chunk in chunks if chunk["messageId"].startswith("laneway-")]
        # Two commands, Codex's warning after a compaction, a retry.
        assert len(set(ours)) == len(ours) >= 4
        assert "Trying again" in client.text(session, "agent_thought_chunk")
        async with here.agent() as client:
            await client.load(session)
        assert unnamed(client) == []
        assert client.messages(session)[-1].startswith("The turn failed")


async def test_an_id_of_ours_is_never_used_twice_in_a_session(shared: Shared) -> None:
    """A client that resumes a session has its messages on the screen: what we say next is another one."""
    async with shared.stage() as here:
        told = []
        async with here.agent() as client:
            session = await client.new()
            await client.prompt(session, "%say Hello.")
            await client.prompt(session, "/help")
            await client.ask("session/close", {"sessionId": session})
            await client.resume(session)
            await client.prompt(session, "/help")
            told += client.of("agent_message_chunk", session)
        async with here.agent() as client:
            await client.resume(session)
            await client.prompt(session, "/help")
            told += client.of("agent_message_chunk", session)
    assert len({message["messageId"] for message in told}) == len(told) == 4
