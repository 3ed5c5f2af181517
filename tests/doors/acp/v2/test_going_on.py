"""Protocol 2: turns that go on when their prompt is over, and prompts that are put into a turn."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.doors.acp.draft import DraftClient, draft
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Message, Refused, Stage, stage
from tests.doors.acp.telling import Gate, Gates
from tests.doors.acp.witness import codex_of, refused
from tests.wire.support import linux_only

STEERED = "%say Steered."
NO_METHOD = Refused({"code": -32601, "message": "Method not found"})
END = {"state": "idle", "stopReason": "end_turn"}


@pytest.fixture
def gates(tmp_path: Path) -> Iterator[Gates]:
    with closing(Gates(tmp_path)) as made:
        yield made


def behind(gate: Gate, folder: Path) -> str:
    """A command that waits for a test's word."""
    return f"%run read x < {folder / gate.name}"


async def wait_command(client: DraftClient, gate: Gate) -> None:
    await client.wait_update(
        lambda each: each.kind == "tool_call_update" and gate.name in each.body.get("title", "")
    )


def in_words(client: DraftClient) -> None:
    """Its questions can only be asked in text."""
    client.on_permission = lambda params: NO_METHOD


def states(client: DraftClient) -> list[str]:
    return [each["state"] for each in client.states()]


def times_told(here: Stage, words: str) -> int:
    """How often the model was told something, at the end."""
    return json.dumps(here.requests[-1]["input"]).count(words)


# ── prompts that are put into a turn ───────────────────────────────────────


async def test_a_prompt_goes_into_the_turn_of_a_command(tmp_path: Path, gates: Gates) -> None:
    """It is seen and answered; what the command made of itself for Codex is not seen."""
    gate = gates.new()
    async with stage(tmp_path) as here, draft(here, "--steer") as client:
        session = await client.open()
        plan = f"/plan {behind(gate, tmp_path)}\n%say After."
        await client.prompt(session, plan)
        await wait_command(client, gate)
        second = client.start_prompt(session, STEERED)
        await client.ask("session/list", {})  # behind the steering
        gate.go()
        accepted = await second
        assert await client.wait_state("idle") == END
        assert times_told(here, STEERED) == 1
    assert list(client.whole("user_message").values()) == [plan, STEERED]
    assert client.whole("user_message")[accepted["messageId"]] == STEERED


async def test_a_prompt_goes_into_a_turn_that_an_answer_moved_on(tmp_path: Path, gates: Gates) -> None:
    """The answer itself is no message to Codex; the prompt behind it is."""
    gate = gates.new()
    async with stage(tmp_path) as here, draft(here, "--steer") as client:
        in_words(client)
        session = await client.open()
        asks = f"%ask Which? Red | Blue\n{behind(gate, tmp_path)}\n%say After."
        await client.turn(session, asks)
        await client.prompt(session, "a")
        await wait_command(client, gate)
        second = client.start_prompt(session, STEERED)
        await client.ask("session/list", {})
        gate.go()
        accepted = await second
        assert await client.wait_state("idle", 1) == END
        assert times_told(here, STEERED) == 1
    assert list(client.whole("user_message").values()) == [asks, "a", STEERED]
    assert client.whole("user_message")[accepted["messageId"]] == STEERED


async def test_a_prompt_in_a_turn_waits_through_a_question_in_text(shared: Shared) -> None:
    """The prompt that began the turn is over, but not the turn: it takes the other one later."""
    async with shared.stage() as here, draft(here, "--steer") as client:
        client.on_permission = lambda params: None
        session = await client.open()
        await client.prompt(session, "%ask Which? Red | Blue\n%say After.")
        asked = await client.wait_asked("session/request_permission")
        second = client.start_prompt(session, STEERED)
        await client.ask("session/list", {})
        client.answer(asked, NO_METHOD)
        assert await client.wait_state("idle") == END
        assert not second.done()
        answered = await client.prompt(session, "a")
        accepted = await second
        assert await client.wait_state("idle", 1) == END
    assert client.whole("user_message")[answered["messageId"]] == "a"
    assert client.whole("user_message")[accepted["messageId"]] == STEERED
    assert client.messages(session) == ["Steered."]


# ── turns that go on ───────────────────────────────────────────────────────


@asynccontextmanager
async def unanswered(
    here: Stage, rest: str, *words: str, limit_s: int = 1
) -> AsyncIterator[tuple[DraftClient, str]]:
    """A session whose turn has asked something in text, which nobody answered in time: it goes on."""
    limit = {"LANEWAY_APPROVAL_TIMEOUT_SECS": str(limit_s)}
    async with draft(here, *words, env=limit) as client:
        in_words(client)
        session = await client.open()
        assert await client.turn(session, f"%ask Which? Red | Blue\n{rest}") == END
        await client.wait_state("running", 1)
        yield client, session


async def test_a_turn_that_goes_on_without_an_answer_runs_and_ends(shared: Shared) -> None:
    """Its prompt was over with the question; the session is busy again, and tells how that ended."""
    async with shared.stage() as here, unanswered(here, "%run true\n%say After.") as (client, session):
        assert await client.wait_state("idle", 1) == END
        assert (await client.turn(session, "%say Next."))["stopReason"] == "end_turn"
    assert client.messages(session) == ["After.", "Next."]
    told = ["running", "requires_action", "idle", "running", "idle", "running", "idle"]
    assert states(client) == told


async def test_a_turn_that_asks_again_in_text_rests_until_somebody_answers(shared: Shared) -> None:
    """No prompt waits for it that could end; the next one is the answer all the same."""
    rest = "%ask Or else? Red | Blue\n%say After."
    async with shared.stage() as here, unanswered(here, rest, limit_s=4) as (client, session):
        assert await client.wait_state("idle", 1) == END
        await client.turn(session, "a")
    assert client.messages(session) == ["After."]
    once = ["running", "requires_action", "idle"]
    assert states(client) == [*once, *once, "running", "idle"]


async def test_a_prompt_goes_into_a_turn_that_nobody_answered(tmp_path: Path, gates: Gates) -> None:
    """It is accepted, and the end of the turn is told."""
    gate = gates.new()
    rest = f"{behind(gate, tmp_path)}\n%say After."
    async with stage(tmp_path) as here, unanswered(here, rest, "--steer") as (client, session):
        await wait_command(client, gate)
        second = client.start_prompt(session, STEERED)
        await client.ask("session/list", {})
        gate.go()
        accepted = await second
        assert await client.wait_state("idle", 1) == END
    assert client.whole("user_message")[accepted["messageId"]] == STEERED


async def test_a_cancel_ends_a_turn_that_nobody_answered_and_what_was_put_into_it(shared: Shared) -> None:
    """Every request is answered, and the session rests as it was told to."""
    rest = "%run sleep 600\n%say After."
    async with shared.stage() as here, unanswered(here, rest, "--steer") as (client, session):
        await client.wait_kind("tool_call_update")
        second = client.start_prompt(session, STEERED)
        client.cancel(session)
        assert (await refused(second))["code"] == -32800
        assert await client.wait_state("idle", 1) == {"state": "idle", "stopReason": "cancelled"}
        assert (await client.turn(session, "%say Next."))["stopReason"] == "end_turn"


@linux_only
async def test_a_codex_that_dies_in_a_turn_that_nobody_answered_is_an_error(shared: Shared) -> None:
    """For the session, and for the prompt that was put into it."""
    rest = "%run sleep 600\n%say After."
    async with shared.stage() as here, unanswered(here, rest, "--steer") as (client, session):
        await client.wait_kind("tool_call_update")
        second = client.start_prompt(session, STEERED)
        await client.ask("session/list", {})
        os.kill(codex_of(client), signal.SIGKILL)
        error: Message = await refused(second)
        ended = await client.wait_state("idle", 1)
        assert (ended["stopReason"], ended["error"]["data"]["kind"]) == ("error", "engine_lost")
        assert error["data"]["kind"] == "engine_lost"
        assert (await client.turn(session, "%say Next."))["stopReason"] == "end_turn"


async def test_a_session_can_be_closed_while_a_question_stands_in_text(shared: Shared) -> None:
    """Its turn ends then, and that is told before the answer."""
    async with shared.stage() as here, draft(here) as client:
        in_words(client)
        session = await client.open()
        assert await client.turn(session, "%ask Which? Red | Blue\n%say After.") == END
        assert await client.ask("session/close", {"sessionId": session}) == {}
    assert states(client) == ["running", "requires_action", "idle", "running", "idle"]
