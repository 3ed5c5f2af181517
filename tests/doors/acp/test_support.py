"""The harness of the ACP tests shows what an agent does, and sees what it must not do."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.doors.acp import golden as recorder
from tests.doors.acp import support
from tests.doors.acp.golden import golden
from tests.doors.acp.support import FULL, Client, Message, Refused, select, stage
from tests.wire.support import linux_only

PROGRAM = (str(Path(__file__).with_name("stand_in.py")),)


@asynccontextmanager
async def stand_in(state: Path, capabilities: Message = FULL) -> AsyncIterator[tuple[Client, str]]:
    """The stand-in, greeted, with a session."""
    async with (
        stage(state) as here,
        here.agent(program=PROGRAM, capabilities=capabilities) as client,
    ):
        yield client, await client.new()


async def test_a_prompt_is_answered_and_its_updates_are_kept_in_order(tmp_path: Path) -> None:
    """Chunks make a message, messages a text."""
    async with stand_in(tmp_path) as (client, session):
        assert await client.prompt(session, "say Hello there") == {"stopReason": "end_turn"}
        assert client.kinds(session) == ["available_commands_update", *["agent_message_chunk"] * 2]
        assert client.messages() == ["Hello there "]
        assert client.hello["agentInfo"]["name"] == "stand-in"


async def test_a_handler_answers_for_the_person(tmp_path: Path) -> None:
    """By kind or by id; what it chose is seen in what the call becomes."""
    async with stand_in(tmp_path) as (client, session):
        client.on_permission = lambda params: select(params, "allow_once")
        await client.prompt(session, "ask")
        (call,) = client.tool_calls(session).values()
        assert call["rawOutput"] == {"outcome": {"outcome": "selected", "optionId": "yes"}}
        assert (call["status"], call["title"], client.open_tool_calls()) == ("completed", "ls", {})


async def test_without_a_handler_nothing_is_allowed_and_nothing_filled_in(tmp_path: Path) -> None:
    """The default of a test is the person who went away."""
    async with stand_in(tmp_path) as (client, session):
        await client.prompt(session, "ask")
        await client.prompt(session, "form")
        (call,) = client.tool_calls(session).values()
        assert call["rawOutput"] == {"outcome": {"outcome": "cancelled"}}
        assert client.text() == '{"action": "cancel"}'


async def test_a_question_may_be_left_open_and_answered_later(tmp_path: Path) -> None:
    """So that a test can do something else in between."""
    async with stand_in(tmp_path) as (client, session):
        client.on_elicitation = lambda params: None
        going = client.start_prompt(session, "form")
        asked = await client.wait_asked("elicitation/create")
        assert not going.done()
        client.answer(asked, {"action": "decline"})
        assert await going == {"stopReason": "end_turn"}


async def test_a_turn_is_cancelled(tmp_path: Path) -> None:
    """After the update that a test waits for."""
    async with stand_in(tmp_path) as (client, session):
        going = client.start_prompt(session, "wait")
        await client.wait_kind("agent_message_chunk", session)
        client.cancel(session)
        assert await going == {"stopReason": "cancelled"}


async def test_an_error_of_the_agent_is_raised_or_handed_over(tmp_path: Path) -> None:
    """With its code."""
    async with stand_in(tmp_path) as (client, session):
        assert (await client.refusal("session/set_mode", {"sessionId": session, "modeId": "x"}))[
            "code"
        ] == -32601
        with pytest.raises(Refused) as refused:
            await client.ask("session/close", {"sessionId": session})
        assert refused.value.code == -32601


async def test_a_message_off_the_schema_fails_the_test_at_its_end(tmp_path: Path) -> None:
    """No test has to look for it."""
    with pytest.raises(AssertionError, match="'cancelled' is not one of"):
        async with stand_in(tmp_path) as (client, session):
            await client.prompt(session, "wrong")


async def test_a_message_for_which_the_client_declared_nothing_fails_it_too(tmp_path: Path) -> None:
    """The lint knows what this client said of itself."""
    with pytest.raises(AssertionError, match=r"capability elicitation\.form"):
        async with stand_in(tmp_path, {}) as (client, session):
            await client.prompt(session, "form")


async def test_an_agent_that_dies_ends_every_wait(tmp_path: Path) -> None:
    """With what it said last."""
    async with stand_in(tmp_path) as (client, session):
        with pytest.raises(EOFError):
            await client.prompt(session, "die")
        with pytest.raises(AssertionError, match="the agent has ended"):
            await client.wait_kind("plan")
        assert await client.process.wait() == 1
    assert client.stderr == "The end.\n"


@linux_only
async def test_a_process_that_outlives_its_agent_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the mark in its environment, whoever its parent is now."""
    marks = []

    async def note(mark: str) -> None:
        marks.append(mark)

    monkeypatch.setattr(support, "assert_gone", note)
    async with stand_in(tmp_path) as (client, session):
        await client.prompt(session, "orphan")
    (left,) = support.marked(marks[0])
    monkeypatch.undo()
    waiting = asyncio.ensure_future(support.assert_gone(marks[0]))
    await asyncio.sleep(0)
    assert not waiting.done()
    os.kill(left, signal.SIGKILL)
    await waiting
    assert support.marked(marks[0]) == []


async def test_a_trace_is_the_same_from_run_to_run(tmp_path: Path) -> None:
    """Ids, versions and places have names; chunks of one message are one."""
    async with stand_in(tmp_path) as (client, session):
        client.on_permission = lambda params: select(params, "yes")
        await client.prompt(session, "say Hello there")
        await client.prompt(session, "ask")
    golden("harness", client.trace())


def test_a_trace_that_differs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that nobody recorded, with the remedy; recording makes both right."""
    monkeypatch.setattr(recorder, "GOLDEN", tmp_path)
    monkeypatch.delenv("LANEWAY_RECORD", raising=False)
    with pytest.raises(AssertionError, match="LANEWAY_RECORD=1 writes it"):
        golden("x", [{"from": "agent"}])
    monkeypatch.setenv("LANEWAY_RECORD", "1")
    golden("x", [{"from": "agent"}])
    monkeypatch.delenv("LANEWAY_RECORD")
    golden("x", [{"from": "agent"}])
    with pytest.raises(AssertionError):
        golden("x", [{"from": "client"}])
