"""Prompts during a turn wait in order, each has its own end, and a cancel is for all of them."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, Client, Message
from tests.doors.acp.telling import Gate, Gates
from tests.doors.acp.witness import refused

CANCELLED = {"stopReason": "cancelled"}
ENDED = {"stopReason": "end_turn"}


async def running(client: Client, session: str, gate: Gate) -> asyncio.Future[Message]:
    """A prompt whose command waits at a gate."""
    going = client.start_prompt(session, f"%run read x < {gate.name}\n%say Went.")
    await client.wait_update(lambda each: each.kind == "tool_call" and gate.name in each.body["title"])
    return going


async def test_prompts_are_served_in_order_and_each_has_its_own_end(shared: Shared) -> None:
    """One that fails fails alone."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        with closing(Gates(here.work)) as made:
            waiting = made.new()
            first = await running(client, session, waiting)
            second = client.start_prompt(session, "%fail 400 No.")
            third = client.start_prompt(session, "%say Third.")
            other = await client.new()
            assert await client.prompt(other, "%say Meanwhile.") == ENDED
            assert not first.done()
            assert not second.done()
            waiting.go()
            assert await first == ENDED
        error = await refused(second)
        assert (error["code"], error["data"]["source"]) == (-32603, "codex")
        assert await third == ENDED
        assert client.messages(session) == ["Went.", "Third."]
    golden("point-13-queue", client.trace(without=("usage_update",)))


async def test_a_cancel_cancels_what_runs_and_what_waits(shared: Shared) -> None:
    """What waited never reaches the model; what comes afterwards is served."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        with closing(Gates(here.work)) as made:
            going = [await running(client, session, made.new())]
            going += [client.start_prompt(session, f"%say {word}.") for word in ("Two", "Three")]
            client.cancel(session)
            assert await asyncio.gather(*going) == [CANCELLED] * 3
            assert client.open_tool_calls() == {}
        assert await client.prompt(session, "%say After.") == ENDED
        assert client.messages(session) == ["After."]
        assert len(here.requests) == 2
    golden("point-13-cancel", client.trace(without=("usage_update",)))


async def test_a_cancel_in_the_same_breath_as_its_prompt_cancels_it(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not the prompt that comes right behind, in the same write."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        for _ in range(3):
            written: list[bytes] = []
            with monkeypatch.context() as patch:
                patch.setattr(client, "send_bytes", written.append)
                first = client.start_prompt(session, "%hang")
                client.cancel(session)
                second = client.start_prompt(session, "%say Second.")
            client.send_bytes(b"".join(written))
            assert (await first, await second) == (CANCELLED, ENDED)
        assert client.messages(session) == ["Second."] * 3


async def test_a_request_that_is_cancelled_is_answered_so_and_its_turn_ends(shared: Shared) -> None:
    """`$/cancel_request` is for one prompt: the others go on."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        with closing(Gates(here.work)) as made:
            waiting = made.new()
            first = await running(client, session, waiting)
            second = client.start_prompt(session, "%say Second.")
            client.cancel_request(client.last_id)
            assert (await refused(second))["code"] == -32800
            assert not first.done()
            waiting.go()
            assert await first == ENDED
        hanging = client.start_prompt(session, "%think Hm.\n%hang")
        number = client.last_id
        await client.wait_kind("agent_thought_chunk", session)
        last = client.start_prompt(session, "%say Last.")
        client.cancel_request(number)
        assert (await refused(hanging))["code"] == -32800
        assert await last == ENDED
        assert client.messages(session) == ["Went.", "Last."]


async def test_a_cancel_takes_open_questions_back(shared: Shared) -> None:
    """The client is told, and nothing is said of anybody who did not answer."""
    async with shared.stage() as here, here.agent(capabilities=FULL) as client:
        session = await client.new()
        client.on_permission = lambda params: None
        going = client.start_prompt(session, "%run! touch ../outside\n%say After.")
        asked = await client.wait_asked("session/request_permission")
        client.cancel(session)
        assert await going == CANCELLED
        back = await client.wait_heard(lambda each: each["method"] == "$/cancel_request")
        assert back["params"] == {"requestId": asked["id"]}
        assert await client.prompt(session, "%say Next.") == ENDED
        assert (client.of("notice"), client.open_tool_calls()) == ([], {})
        assert client.messages(session) == ["Next."]


async def test_by_setting_a_prompt_goes_into_the_running_turn(shared: Shared) -> None:
    """Its end answers both; a cancel is for both."""
    async with shared.stage() as here, here.agent("--steer") as client:
        session = await client.new()
        with closing(Gates(here.work)) as made:
            waiting = made.new()
            first = await running(client, session, waiting)
            second = client.start_prompt(session, "%say Steered.")
            # Behind the steering: whoever asks for the options is answered in order.
            await client.ask("session/list", {})
            waiting.go()
            assert (await first, await second) == (ENDED, ENDED)
            assert client.messages(session) == ["Steered."]
            assert len(here.requests) == 2
            both = [await running(client, session, made.new()), client.start_prompt(session, "%say More.")]
            client.cancel(session)
            assert await asyncio.gather(*both) == [CANCELLED] * 2
        assert await client.prompt(session, "%say Alone.") == ENDED


async def test_what_cannot_be_steered_into_a_turn_waits_for_its_end(shared: Shared) -> None:
    """A review takes no further words: Codex refuses them, and they are a prompt of their own then."""
    async with shared.stage() as here, here.agent("--steer") as client:
        session = await client.new()
        with closing(Gates(here.work)) as made:
            waiting = made.new()
            review = client.start_prompt(session, f"/review %run read x < {waiting.name}")
            await client.wait_kind("tool_call", session)
            behind = client.start_prompt(session, "%say Behind.")
            await client.ask("session/list", {})
            waiting.go()
            assert (await review, await behind) == (ENDED, ENDED)
        assert client.messages(session)[-1] == "Behind."


async def test_a_client_that_never_waits_is_told_when_it_is_too_much(shared: Shared) -> None:
    """The prompts that had a place keep it."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        going = [client.start_prompt(session, "%hang") for _ in range(66)]
        error = await refused(going.pop())
        assert (error["code"], error["data"]["kind"]) == (-32600, "limit_reached")
        client.cancel(session)
        assert await asyncio.gather(*going) == [CANCELLED] * 65
