"""Questions of a session to the person behind the client: whose they are, what no answer means (FR-18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.core.named.closer import SUMMARY_PROMPT
from tests.doors.mcp.support import FORMS, Message, stage
from tests.doors.mcp.views import QUIET, audit, configure, outputs, texts

ASKS = "%run! echo granted > {}.txt"


def is_question(message: Message) -> bool:
    return bool(message["method"] == "elicitation/create")


@pytest.mark.covers("FR-18.1", "FR-18.2", "FR-18.3")
async def test_two_questions_at_once_are_told_apart_by_session_and_answered_apart(tmp_path: Path) -> None:
    """In the first turn already; the second one is answered first, and with a no."""
    async with stage(tmp_path) as here, here.server("mcp", capabilities=FORMS, env=QUIET) as client:
        client.on_ask = lambda message: None
        calls = {
            name: client.start("codex", prompt=ASKS.format(name), identity=name, cwd=str(tmp_path))
            for name in ("first", "second")
        }
        asked = {}
        for name in calls:
            question = await client.wait_heard(
                lambda message, name=name: is_question(message) and f"{name}.txt" in str(message)  # type: ignore[misc]
            )
            asked[name] = question
        bound = (await client.content("agent_status"))["identities"]
        for name, question in asked.items():
            assert question["params"]["agent_id"] == bound[name]["agent_id"]
            assert question["params"]["threadId"] == bound[name]["thread_id"]
            assert "requestedSchema" in question["params"]
        assert asked["first"]["id"] != asked["second"]["id"]
        for name, action in (("second", "decline"), ("first", "accept")):
            client.send({"jsonrpc": "2.0", "id": asked[name]["id"], "result": {"action": action}})
            assert "result" in await calls[name]

    assert (tmp_path / "first.txt").exists()
    assert not (tmp_path / "second.txt").exists()


@pytest.mark.covers("FR-18.4", "FR-9.2")
async def test_a_question_that_nobody_answers_is_declined_after_its_time_and_that_is_logged(
    tmp_path: Path,
) -> None:
    """The turn goes on and the client is told that its answer is no longer wanted."""
    async with stage(tmp_path) as here:
        configure(here, "[laneway]\napproval_timeout_secs = 1\n")
        async with here.server("mcp", capabilities=FORMS, env=QUIET) as client:
            client.on_ask = lambda message: None
            session = await client.content(
                "codex", prompt=f"{ASKS.format('late')}\n%say went on", cwd=str(tmp_path)
            )
            asked = await client.wait_heard(is_question)
            withdrawn = await client.wait_heard(lambda m: m["method"] == "notifications/cancelled")
        lines = [line for line in audit(here) if line["event_type"] == "approval"]

    assert session["content"].startswith("went on\n\nDeclined, because nobody answered in time")
    assert withdrawn["params"]["requestId"] == asked["id"]
    assert not (tmp_path / "late.txt").exists()
    assert [(line["agent_id"], line["outcome"]) for line in lines] == [(session["agent_id"], "timed out")]


@pytest.mark.covers("FR-18.5")
async def test_closing_a_session_declines_its_question_before_it_sums_up(tmp_path: Path) -> None:
    """The command never ran, and the session ends as any other."""
    async with stage(tmp_path) as here, here.server("mcp", capabilities=FORMS) as client:
        client.on_ask = lambda message: None
        client.start("codex", prompt=ASKS.format("never"), cwd=str(tmp_path), identity="dev")
        await client.wait_heard(is_question)
        closed = await client.content("agent_close", identity="dev")
        (line,) = [line for line in audit(here) if line["event_type"] == "approval"]

    assert (closed["status"], line["outcome"]) == ("closed", "session closed")
    assert SUMMARY_PROMPT in texts(here.requests[-1])
    assert not (tmp_path / "never.txt").exists()


async def test_a_client_that_can_ask_nobody_is_told_what_was_declined(tmp_path: Path) -> None:
    """Neither asked nor left waiting, and the audit log knows it."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        session = await client.content("codex", prompt=ASKS.format("never"), cwd=str(tmp_path))
        assert not any(is_question(message) for message in client.heard)
        await client.hang_up()
        (line,) = [line for line in audit(here) if line["event_type"] == "approval"]

    assert "Declined, because this client can ask nobody" in session["content"]
    assert (line["agent_id"], line["outcome"]) == (session["agent_id"], "decline")
    assert "never.txt" in line["message_summary"]


@pytest.mark.parametrize(("action", "is_there"), [("accept", True), ("decline", False), ("cancel", False)])
async def test_a_parked_question_is_answered_by_a_tool_and_the_turn_goes_on(
    tmp_path: Path, action: str, is_there: bool
) -> None:
    """`--unattended park`: the call returns with the question, and `agent_answer` with the result."""
    async with (
        stage(tmp_path) as here,
        here.server("mcp", "--unattended", "park", env=QUIET) as client,
    ):
        asked = await client.content("codex", prompt=ASKS.format("parked"), cwd=str(tmp_path))
        assert asked["status"] == "input_required"
        assert asked["question"]["kind"] == "command"
        question_id = asked["question"]["question_id"]
        answered = await client.call("agent_answer", question_id=question_id, action=action)
        assert answered["result"]["structuredContent"]["agent_id"] == asked["agent_id"]
        again = await client.error("agent_answer", question_id=question_id, action=action)

    assert again["code"] == -32007
    assert (tmp_path / "parked.txt").exists() is is_there


async def test_a_question_of_the_model_is_a_form_and_the_choice_reaches_the_model(tmp_path: Path) -> None:
    """Not only approvals: what the model wants to know is asked as well."""
    async with stage(tmp_path) as here, here.server("mcp", capabilities=FORMS, env=QUIET) as client:
        client.on_ask = lambda message: {"action": "accept", "content": {"choice": "blue"}}
        await client.content("codex", prompt="%ask Which colour? red | blue")
        asked = await client.wait_heard(is_question)

    assert asked["params"]["requestedSchema"]["required"] == ["choice"]
    assert "blue" in outputs(here.requests[-1])
