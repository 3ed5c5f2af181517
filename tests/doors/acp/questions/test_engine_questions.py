"""Questions that engines other than Codex ask, and how each reaches a person in an editor."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.core.model import DECLINE, Answer, Question
from laneway.doors.acp.questions.ask_client import AskOutcome
from laneway.rendering import questions_in_text
from laneway.rendering.questions_in_text import InText
from tests.doors.acp.asking import ELICITATION, FORMS, PERMISSION, REFUSED, asking
from tests.doors.acp.questions.test_permission_options import selected
from tests.doors.sample_questions import CHOICES, COMMAND_WITH_WORDS, NO, PLAN, TOOL, YES

SAY_WHY = "say-why"


def asked(fields: dict[str, Any]) -> Question:
    identity = {"question_id": "q-1", "thread_id": "t", "turn_id": "u", "item_id": None, "engine": "Claude"}
    return Question(**{"kind": "command", **identity, **fields})


def text_of(call: dict[str, Any]) -> str:
    return "\n\n".join(part["content"]["text"] for part in call["content"])


async def test_a_tool_is_asked_about_by_name_with_its_arguments_fenced() -> None:
    """And may be allowed for the session."""
    async with asking(asked(TOOL)) as one:
        params = await one.reply(PERMISSION, selected("acceptForSession"))
        assert await one.settled() == AskOutcome(Answer(choice_id="acceptForSession"))
        call = params["toolCall"]
        assert (call["title"], call["name"], call["kind"]) == ("WebFetch", "WebFetch", "other")
        assert call["rawInput"] == TOOL["arguments"]
        assert text_of(call).startswith('```json\n{\n  "url": "https://example.org/a"')
        assert "Reason: to look it up" in text_of(call)
        assert [option["optionId"] for option in params["options"]] == [
            "accept",
            "acceptForSession",
            "decline",
            SAY_WHY,
        ]


async def test_a_plan_is_shown_whole_and_switches_the_mode() -> None:
    """A yes carries it out."""
    async with asking(asked(PLAN)) as one:
        params = await one.reply(PERMISSION, selected("accept"))
        assert (await one.settled()).answer == Answer(choice_id="accept")
        call = params["toolCall"]
        assert (call["title"], call["kind"]) == ("Carry out this plan?", "switch_mode")
        assert text_of(call) == PLAN["plan"]


@pytest.mark.parametrize("fields", [TOOL, PLAN, COMMAND_WITH_WORDS], ids=["tool", "plan", "command"])
async def test_a_no_with_words_is_asked_for_by_a_form(fields: dict[str, Any]) -> None:
    """The engine gets them."""
    async with asking(asked(fields), FORMS) as one:
        await one.reply(PERMISSION, selected(SAY_WHY))
        form = await one.reply(ELICITATION, {"action": "accept", "content": {"words": " rather not "}})
        assert form["requestedSchema"]["properties"]["words"]["title"] == (
            "Why not, or what should Claude do instead?"
        )
        assert (await one.settled()).answer == Answer(choice_id="decline", words="rather not")


@pytest.mark.parametrize(
    "reply",
    [{"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"words": " "}}, {}],
    ids=repr,
)
async def test_without_words_a_no_stays_a_no(reply: dict[str, Any]) -> None:
    """It was chosen before."""
    async with asking(asked(TOOL), FORMS) as one:
        await one.reply(PERMISSION, selected(SAY_WHY))
        await one.reply(ELICITATION, reply)
        assert (await one.settled()).answer == DECLINE


@pytest.mark.parametrize("capabilities", [{}, FORMS], ids=["no forms", "forms refused"])
async def test_without_forms_the_next_prompt_has_the_words(capabilities: dict[str, Any]) -> None:
    """Or says that there are none."""
    async with asking(asked(TOOL), capabilities) as one:
        await one.reply(PERMISSION, selected(SAY_WHY))
        if capabilities:
            await one.reply(ELICITATION, REFUSED)
        in_text = await one.end()
        assert isinstance(in_text, InText)
        assert in_text.text.startswith("Why not, or what should Claude do instead?")
        assert questions_in_text.from_text(in_text, "use curl") == Answer(
            choice_id="decline", words="use curl"
        )
        assert questions_in_text.from_text(in_text, "skip") == DECLINE
        assert questions_in_text.from_text(in_text, "  ") == in_text


async def test_codexs_questions_offer_no_words() -> None:
    """It would not pass them on."""
    plain = {**TOOL, "choices": (YES, NO)}
    async with asking(asked(plain)) as one:
        params = await one.reply(PERMISSION, selected("accept"))
        await one.settled()
        assert SAY_WHY not in [option["optionId"] for option in params["options"]]


async def test_several_choices_are_lists_of_a_form() -> None:
    """With what each means, and with own words beside them."""
    async with asking(asked(CHOICES), FORMS) as one:
        content = {"colour": "Red", "colour_note": "dark", "parts": ["Door", "Roof"], "sizes": ["S", "L"]}
        form = await one.reply(ELICITATION, {"action": "accept", "content": content | {"parts_note": "gate"}})
        properties = form["requestedSchema"]["properties"]
        assert list(properties) == ["colour", "colour_note", "parts", "parts_note", "sizes"]
        assert properties["sizes"]["items"] == {"type": "string", "enum": ["S", "L"]}
        assert {"const": "Door", "title": "Door", "description": "the front"} in properties["parts"]["items"][
            "anyOf"
        ]
        assert (await one.settled()).answer == Answer(
            choice_id="accept",
            values={"colour": ["Red", "dark"], "parts": ["Door", "Roof", "gate"], "sizes": ["S", "L"]},
        )


async def test_several_choices_are_asked_in_text_where_there_are_no_forms() -> None:
    """One option is a button; several are named by their letters."""
    async with asking(asked(CHOICES)) as one:
        await one.reply(PERMISSION, selected("1"))
        in_text = await one.end()
        assert isinstance(in_text, InText)
        assert in_text.text.startswith("Claude has questions.")
        assert "1. **Parts** (one or more)" in in_text.text
        answer = questions_in_text.from_text(in_text, "1: a, roof\n2: S")
        assert answer == Answer(
            choice_id="accept", values={"colour": "Blue", "parts": ["Door", "Roof"], "sizes": ["S"]}
        )
        answer = questions_in_text.from_text(in_text, "1: Wall, inner\n2: b; a")
        assert isinstance(answer, Answer)
        assert answer.values["parts"] == ["Wall, inner"]
        assert answer.values["sizes"] == ["L", "S"]
        answer = questions_in_text.from_text(in_text, "1: the door, but not the gate\n2: S")
        assert isinstance(answer, Answer)
        assert answer.values["parts"] == ["the door, but not the gate"]
        again = questions_in_text.from_text(in_text, "1: Door\n2: huge")
        assert isinstance(again, InText)
        assert "“huge” is no answer for “Sizes”." in again.text
