"""Point 2 for what goes on behind a turn: all that such a command prints arrives once, with its true end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import msgspec
import pytest

from laneway.core.model import Activity
from laneway.doors.acp.updates.tool_calls import _LATE_MARK, ended
from laneway.doors.acp.v2 import calls
from tests.doors.acp.calls import CALL, TERMINAL, THREAD, command
from tests.doors.acp.draft import draft
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import ZED, Client, Message, Refused, Stage, Update, text
from tests.doors.acp.telling import Gate, Gates, holds_exactly, only_call, printed, told

LONG = "echo one; sleep 0.1; echo two; read x < gate-0; echo three"
"""Codex loses its first piece in most runs, and tells the last one when the turn is over."""
PRINTED = "one\ntwo\nthree\n"
NOTE = "Still running in the background."


def leaving(words: str, then: str = "%say Bye.") -> str:
    """A prompt whose turn ends while its command runs on."""
    arguments = {"cmd": words, "yield_time_ms": 500, "login": False}
    return f"%tool exec_command {json.dumps(arguments)}\n{then}"


@asynccontextmanager
async def scene(shared: Shared) -> AsyncIterator[tuple[Stage, Gate, Gate]]:
    """With the gate of the command, and one for another."""
    async with shared.stage() as here:
        with closing(Gates(here.work)) as gates:
            yield here, gates.new(), gates.new()


async def left_running(client: Client) -> tuple[str, str, int]:
    """The session, the call that its turn left, and how much had been said of it."""
    session = await client.new()
    assert await client.prompt(session, leaving(LONG)) == {"stopReason": "end_turn"}
    call = only_call(client)
    assert (call["status"], text(call["content"][-1])) == ("completed", NOTE)
    return session, call["toolCallId"], len(told(client, call["toolCallId"]))


def has_ended(update: Update) -> bool:
    """Whether this tells the end of a call that was left before."""
    return update.kind == "tool_call_update" and "three" in json.dumps(update.body.get("content"))


def has_exited(update: Update) -> bool:
    return "terminal_exit" in (update.body.get("_meta") or {})


async def test_the_whole_output_replaces_the_note_when_the_command_has_ended(shared: Shared) -> None:
    """One update of the same call, though nobody has asked for anything; the next prompt is as any other."""
    async with scene(shared) as (here, gate, _), here.agent() as client:
        session, call_id, before = await left_running(client)
        gate.go()
        await client.wait_update(has_ended)
        call = only_call(client)
        assert (call["toolCallId"], call["status"]) == (call_id, "completed")
        assert text(call["content"]) == f"```\n{PRINTED}```"
        assert len(told(client, call_id)) == before + 1
        assert await client.prompt(session, "%say After.") == {"stopReason": "end_turn"}
        assert len(told(client, call_id)) == before + 1


async def test_its_end_is_told_during_another_turn_too(shared: Shared) -> None:
    """And is no part of that turn: its call keeps the id of its own."""
    async with scene(shared) as (here, gate, other), here.agent() as client:
        session, call_id, before = await left_running(client)
        going = client.start_prompt(session, f"%run read x < {other.name}\n%say After.")
        await client.wait_update(lambda each: other.name in each.body.get("title", ""))
        gate.go()
        await client.wait_update(has_ended)
        assert [call["status"] for call in client.tool_calls().values()] == ["completed", "in_progress"]
        other.go()
        assert await going == {"stopReason": "end_turn"}
        assert len(told(client, call_id)) == before + 1
        assert client.open_tool_calls() == {}


async def test_a_command_that_outlives_a_turn_that_failed_is_told_to_its_end_too(shared: Shared) -> None:
    """The model failed, not the command."""
    async with scene(shared) as (here, gate, _), here.agent() as client:
        session = await client.new()
        with pytest.raises(Refused):
            await client.prompt(session, leaving(LONG, then="%fail 400 No."))
        assert text(only_call(client)["content"][-1]) == NOTE
        gate.go()
        await client.wait_update(has_ended)
        call = only_call(client)
        assert (call["status"], text(call["content"])) == ("completed", f"```\n{PRINTED}```")


async def test_a_terminal_of_ours_gets_what_it_lacks_and_exits_when_the_command_does(shared: Shared) -> None:
    """Every character once, and one exit, with the code."""
    async with scene(shared) as (here, gate, _), here.agent(capabilities=ZED) as client:
        _, call_id, before = await left_running(client)
        assert not any(map(has_exited, client.updates))
        gate.go()
        await client.wait_update(has_exited)
        updates = told(client, call_id)
        assert holds_exactly(printed(updates), PRINTED)
        assert len(updates) == before + 1
        last = updates[-1]
        assert last["content"] == [{"type": "terminal", "terminalId": call_id}]
        assert last["_meta"]["terminal_exit"] == {"terminal_id": call_id, "exit_code": 0, "signal": None}


async def test_a_terminal_of_the_draft_does_so_too(shared: Shared) -> None:
    """By protocol 2 it is told whole, and the session stays idle."""
    async with scene(shared) as (here, gate, _), draft(here) as client:
        assert (await client.turn(await client.open(), leaving(LONG)))["stopReason"] == "end_turn"
        (terminal,) = client.terminals().values()
        assert "exitStatus" not in terminal
        assert (client.the_call()["status"], text(client.the_call()["content"][-1])) == ("completed", NOTE)
        states = client.states()
        gate.go()
        await client.wait_update(lambda each: "exitStatus" in each.body)
        await client.wait_update(lambda each: client.the_call()["content"][-1]["type"] == "terminal")
        (terminal,) = client.terminals().values()
        assert terminal["shown"] == PRINTED.encode()
        assert terminal["exitStatus"] == {"exitCode": 0}
        assert client.the_call()["status"] == "completed"
        assert client.states() == states


async def test_nothing_is_told_of_a_session_that_was_closed(shared: Shared) -> None:
    """What its commands do then is nobody's affair."""
    async with scene(shared) as (here, gate, _), here.agent() as client:
        session, call_id, before = await left_running(client)
        await client.ask("session/close", {"sessionId": session})
        gate.go()
        assert await client.prompt(await client.new(), "%run echo other") == {"stopReason": "end_turn"}
        assert len(told(client, call_id)) == before


# ── as values ──────────────────────────────────────────────────────────────


def late(output: str, late_output: str, exit_code: int) -> Activity:
    made = command(aggregatedOutput=output, exitCode=exit_code)
    return msgspec.structs.replace(made, late_output=late_output)


@pytest.mark.parametrize(
    ("missed", "rest", "data"),
    [
        ("one\nthree\n", "three\n", f"three\n{_LATE_MARK}one\n"),
        ("three\n", "three\n", "three\n"),
        ("one\n", "", f"{_LATE_MARK}one\n"),
        (PRINTED, PRINTED, PRINTED),
    ],
    ids=["both", "the end", "the beginning", "everything"],
)
def test_what_belongs_behind_the_terminals_text_comes_first(missed: str, rest: str, data: str) -> None:
    """And only what does not is marked as belonging further up."""
    update = ended(late(PRINTED, missed, exit_code=0), THREAD, TERMINAL, rest=rest)
    assert update["_meta"]["terminal_output"] == {"terminal_id": CALL, "data": data}


def test_a_command_that_failed_in_the_end_says_so_in_both_protocols() -> None:
    """Though its call was completed when its turn was: nobody knew better then."""
    failed = late("no\n", "no\n", exit_code=3)
    told_by_one: Message = ended(failed, THREAD, TERMINAL, rest="no\n")
    assert told_by_one["status"] == "failed"
    assert told_by_one["_meta"]["terminal_exit"]["exit_code"] == 3
    assert calls.call(failed, THREAD, cwd="/work")["status"] == "failed"
    assert calls.exited(failed, THREAD, is_whole=True)["exitStatus"] == {"exitCode": 3}
