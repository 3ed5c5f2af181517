"""A session that is asked for twice: while it loads, once more, and by somebody else."""

from __future__ import annotations

import asyncio

from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Client, Message, Refused, Stage
from tests.doors.acp.witness import refused

ENDED = {"stopReason": "end_turn"}


async def left(here: Stage) -> str:
    """A session of an adapter that is gone."""
    async with here.agent() as client:
        session = await client.new()
        await client.prompt(session, "%say Before.")
    return session


def loading(client: Client, here: Stage, session: str) -> asyncio.Future[Message]:
    return client.request("session/load", {"sessionId": session, "cwd": str(here.work), "mcpServers": []})


async def test_a_prompt_while_the_session_loads_comes_behind_its_history(shared: Shared) -> None:
    """A client that does not wait for the answer is served all the same; its cancel counts, too."""
    async with shared.stage() as here:
        session = await left(here)
        async with here.agent() as client:
            loaded = loading(client, here, session)
            prompted = client.start_prompt(session, "%say After.")
            assert await prompted == ENDED
            assert loaded.done()
            assert client.messages(session) == ["Before.", "After."]
        async with here.agent() as client:
            loaded = loading(client, here, session)
            prompted = client.start_prompt(session, "%hang")
            client.cancel(session)
            assert await prompted == {"stopReason": "cancelled"}
            await loaded
            assert await client.prompt(session, "%say Last.") == ENDED
        assert len(here.requests) == 3


async def test_a_session_that_is_loaded_twice_is_told_twice_and_is_one(shared: Shared) -> None:
    """At once or one after the other, also while a turn runs; a prompt is served once."""
    async with shared.stage() as here:
        session = await left(here)
        async with here.agent() as client:
            both = await asyncio.gather(loading(client, here, session), loading(client, here, session))
            assert both[0] == both[1]
            assert client.kinds(session).count("user_message_chunk") == 2
            running = client.start_prompt(session, "%think Hm.\n%hang")
            await client.wait_kind("agent_thought_chunk", session)
            again = loading(client, here, session)
            client.cancel(session)
            assert await running == {"stopReason": "cancelled"}
            assert await again == both[0]
            # The history has the turn that was cancelled: its prompt is told once more with the first.
            assert client.kinds(session).count("user_message_chunk") == 4
            assert await client.resume(session) == both[0]
            assert await client.prompt(session, "%say Once.") == ENDED
            assert client.messages(session).count("Once.") == 1
        assert len(here.requests) == 3


async def test_a_session_that_another_process_has_open_is_refused_by_name(shared: Shared) -> None:
    """Until it is closed there; a prompt to it is none of ours."""
    async with shared.stage() as here, here.agent() as owner, here.agent() as other:
        session = await owner.new()
        await owner.prompt(session, "%say Mine.")
        error = await refused(loading(other, here, session))
        assert (error["code"], error["data"]["kind"]) == (-32600, "session_in_use")
        assert session.removeprefix("sess_") in error["message"]
        assert "in use by" in error["message"]
        assert await owner.prompt(session, "%say Still mine.") == ENDED
        await owner.ask("session/close", {"sessionId": session})
        await other.load(session)
        assert await other.prompt(session, "%say Now mine.") == ENDED
        assert other.messages(session) == ["Mine.", "Still mine.", "Now mine."]


PIPE_BYTES = 32 * 1024
"""Less than a pipe holds: so much unread means that the agent has much more to say."""


async def long(here: Stage) -> str:
    """A session whose turns do not fit into a pipe together."""
    async with here.agent() as client:
        session = await client.new()
        for number in range(8):
            await client.prompt(session, f"%say {number} " + "x" * 100_000)
    return session


async def test_a_session_that_is_closed_while_it_loads_is_told_no_further(shared: Shared) -> None:
    """The load is refused, nothing comes behind the answer to the close, and it can be loaded again."""
    async with shared.stage() as here:
        session = await long(here)
        async with here.agent() as client:
            client.pause()
            loaded = loading(client, here, session)
            while client.unread_bytes < PIPE_BYTES:
                await asyncio.sleep(0)
            closed = client.request("session/close", {"sessionId": session})
            again = loading(client, here, session)
            client.go_on()
            error = await refused(loaded)
            assert (error["code"], error["data"]["kind"]) == (-32600, "session_closed")
            assert await closed == {}
            before = client.kinds(session).count("user_message_chunk")
            assert before < 8
            await again
            assert [text[0] for text in client.messages(session)[-8:]] == list("01234567")
            assert client.kinds(session).count("user_message_chunk") == before + 8
            assert await client.prompt(session, "%say On.") == ENDED


async def test_a_question_that_stands_in_the_conversation_is_asked_again_behind_its_history(
    shared: Shared,
) -> None:
    """Else the next prompt would answer what the person who loads it cannot see."""
    async with shared.stage() as here, here.agent() as client:
        client.on_permission = lambda params: Refused({"code": -32601, "message": "Method not found"})
        session = await client.new()
        await client.prompt(session, "%ask Which colour? Red | Green\n%say Thanks.")
        (question,) = client.messages(session)
        await loading(client, here, session)
        assert client.messages(session) == [question, question]
        assert await client.prompt(session, "b") == ENDED
        assert client.messages(session)[-1] == "Thanks."
