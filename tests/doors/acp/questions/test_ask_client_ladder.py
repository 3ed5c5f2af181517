"""Below forms: options, then text; and never a silent answer, whatever a client returns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.core.model import DECLINE, Answer, Question
from laneway.doors.acp.client import client_of
from laneway.doors.acp.questions import ask_client
from laneway.doors.acp.questions.ask_client import AskOutcome
from laneway.rendering import questions_in_text as spoken
from laneway.rendering.questions_in_text import InText
from tests.doors.acp.asking import (
    CANCELLED,
    COLOUR,
    ELICITATION,
    FORMS,
    NAME,
    PAGE,
    PERMISSION,
    REFUSED,
    TOOL,
    WHY,
    asking,
    elicited,
    user_input,
)
from tests.doors.acp.hand import SESSION, Hand
from tests.doors.acp.questions.test_permission_options import JSON, command, selected

# ── options, then text ─────────────────────────────────────────────────────


async def test_without_forms_the_options_of_a_question_are_permission_options() -> None:
    """One request per question, each with what its options mean."""
    two = {**COLOUR, "id": "size", "header": "Size", "isOther": False}
    async with asking(user_input(COLOUR, two)) as one:
        first = await one.reply(PERMISSION, selected("1"))
        await one.reply(PERMISSION, selected("0"))
        assert await one.settled() == AskOutcome(
            Answer(choice_id="accept", values={"colour": "Blue", "size": "Red"})
        )
        assert [(option["optionId"], option["name"], option["kind"]) for option in first["options"]] == [
            ("0", "Red", "allow_once"),
            ("1", "Blue", "allow_once"),
            ("other", "Something else (asks in the conversation)", "allow_once"),
            ("decline", "Give no answer", "reject_once"),
        ]
        assert first["toolCall"]["title"] == "Which colour?"
        assert (
            first["toolCall"]["content"][0]["content"]["text"] == "Which colour?\n- Red: warm\n- Blue: cold"
        )


async def test_a_switch_and_a_field_that_may_be_left_out_have_buttons_too() -> None:
    """An MCP server gets a truth value, and nothing for what was left out."""
    options = {"type": "string", "enum": ["a", "b"]}
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "mode": options},
        "required": ["ok"],
    }
    async with asking(elicited(requestedSchema=schema)) as one:
        asked = [await one.reply(PERMISSION, selected(option)) for option in ("1", "leave-out")]
        assert await one.settled() == AskOutcome(Answer(choice_id="accept", values={"ok": False}))
        titles = [params["toolCall"]["title"] for params in asked]
        assert titles == ["Who are you? (ok)", "Who are you? (mode)"]


async def test_whoever_wants_to_say_something_else_says_it_in_the_conversation() -> None:
    """What was chosen before is kept."""
    two = {**COLOUR, "id": "size", "header": "Size"}
    async with asking(user_input(two, COLOUR)) as one:
        await one.reply(PERMISSION, selected("0"))
        await one.reply(PERMISSION, selected("other"))
        end = await one.end()
        assert isinstance(end, InText)
        answer = spoken.from_text(end, "green")
        assert answer == Answer(choice_id="accept", values={"size": "Red", "colour": "green"})


@pytest.mark.parametrize(
    ("question", "capabilities", "refused"),
    [
        (user_input(WHY), {}, []),
        (user_input({**WHY, "isSecret": True}), FORMS, []),
        (user_input(COLOUR), FORMS, [ELICITATION, PERMISSION]),
        (elicited(requestedSchema=NAME), FORMS, [ELICITATION]),
        (user_input({**COLOUR, "options": [{"label": str(n)} for n in range(40)]}), {}, []),
    ],
    ids=["no forms", "a secret", "refuses all", "refuses forms", "too many options"],
)
async def test_what_can_be_asked_in_no_other_way_is_asked_in_text(
    question: Question, capabilities: dict[str, Any], refused: list[str]
) -> None:
    """The next prompt answers it: no question ends in silence."""
    async with asking(question, capabilities) as one:
        for method in refused:
            await one.reply(method, REFUSED)
        end = await one.end()
        assert isinstance(end, InText)
        assert end.question == question
        answer = spoken.from_text(end, "so it is")
        assert isinstance(answer, Answer)
        assert list(answer.values.values()) == ["so it is"]


@pytest.mark.parametrize(
    ("reply", "note"),
    [(selected("decline"), ""), (CANCELLED, "Nobody answered, so the question was declined."), ([], "x")],
    ids=repr,
)
async def test_no_further_question_follows_a_no(reply: Any, note: str) -> None:
    """Whoever declines the first one is not asked the second."""
    async with asking(user_input(COLOUR, {**COLOUR, "id": "size"})) as one:
        await one.reply(PERMISSION, reply)
        end = await one.settled()
        assert end.answer == DECLINE
        assert bool(end.note) == bool(note)


async def test_a_request_without_questions_is_answered_aloud() -> None:
    """Codex gets its empty answer, and the user hears of it."""
    async with asking(user_input()) as one:
        end = await one.settled()
        assert end.answer == DECLINE
        assert end.note


# ── garbage ────────────────────────────────────────────────────────────────


FEW = settings(max_examples=25)
"""Each example is a whole connection; what replies mean is tried more often where it is decided."""


def ended(question: Question, reply: Any, capabilities: dict[str, Any]) -> AskOutcome | InText:
    """How a question ends with a client that gives this reply to everything."""

    async def run() -> AskOutcome | InText:
        hand = Hand(capabilities)
        client = client_of({"clientCapabilities": capabilities})
        task = asyncio.create_task(ask_client.ask(question, hand, client, SESSION, "t"))
        while not task.done():
            getter = asyncio.create_task(hand.asked())
            await asyncio.wait([task, getter], return_when=asyncio.FIRST_COMPLETED)
            if getter.done():
                getter.result().reply.set_result(reply)
            else:
                getter.cancel()
        return task.result()

    return asyncio.run(run())


@pytest.mark.parametrize("question", [command(), TOOL, PAGE, user_input(COLOUR)], ids=lambda q: q.kind)
@FEW
@given(reply=JSON | st.fixed_dictionaries({"outcome": JSON | st.dictionaries(st.text(), JSON)}))
def test_no_garbage_of_a_client_without_forms_grants_anything(question: Question, reply: Any) -> None:
    """Whatever is not clearly a yes is a no, and one that nobody said carries a note."""
    end = ended(question, reply, {})
    assert isinstance(end, AskOutcome)
    assert end.answer.choice_id in ("decline", "cancel")
    assert end.note


@pytest.mark.parametrize(
    "question", [PAGE, elicited(requestedSchema=NAME), user_input(COLOUR)], ids=["page", "form", "input"]
)
@FEW
@given(reply=JSON | st.fixed_dictionaries({"action": JSON | st.just("accept")}, optional={"content": JSON}))
def test_no_garbage_of_a_client_with_forms_fills_in_anything(question: Question, reply: Any) -> None:
    """Only a page can be accepted without a value."""
    end = ended(question, reply, FORMS)
    assert isinstance(end, AskOutcome)
    is_opened = question is PAGE and isinstance(reply, dict) and reply.get("action") == "accept"
    assert (end.answer.choice_id == "accept") == is_opened
