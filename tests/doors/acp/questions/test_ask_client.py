"""Approvals, forms and pages: how each reaches a person, and what their answer becomes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laneway.base.errors import WireBroken
from laneway.codex import questions
from laneway.core.model import DECLINE, Answer, Question
from laneway.doors.acp.questions.ask_client import AskOutcome
from tests.doors.acp.asking import (
    CANCELLED,
    COLOUR,
    ELICITATION,
    FORMS,
    ITEM,
    NAME,
    OWN,
    PAGE,
    PERMISSION,
    REFUSED,
    TOOL,
    WHY,
    asking,
    elicited,
    user_input,
)
from tests.doors.acp.hand import SESSION
from tests.doors.acp.questions.test_permission_options import asked, command, selected

NOBODY = "Nobody answered, so the request of the MCP server desk was declined."
UNFIT = "Your editor returned what does not fit the form, so the request of the MCP server desk was declined."


# ── approvals ──────────────────────────────────────────────────────────────


async def test_an_approval_is_a_permission_request_about_its_item() -> None:
    """With the command and the reason; after a yes the call runs on."""
    async with asking(
        command(["accept", "cancel"], reason="to be up to date", cwd="/work"), call_id=ITEM
    ) as one:
        params = await one.reply(PERMISSION, selected("accept"))
        assert await one.settled() == AskOutcome(Answer(choice_id="accept"))
        assert [option["optionId"] for option in params["options"]] == ["accept", "decline", "cancel"]
        assert params["toolCall"]["toolCallId"] == ITEM
        assert "git pull" in str(params["toolCall"])
        assert "to be up to date" in str(params["toolCall"])
        assert one.hand.updates[-1] == {
            "sessionUpdate": "tool_call_update",
            "toolCallId": ITEM,
            "status": "in_progress",
        }


async def test_a_no_of_a_person_needs_no_note() -> None:
    """They know; and the call is left to its end."""
    async with asking(command(), call_id=ITEM) as one:
        await one.reply(PERMISSION, selected("decline"))
        assert await one.settled() == AskOutcome(DECLINE)
        assert len(one.hand.updates) == 1


@pytest.mark.parametrize(
    ("reply", "choice", "note"),
    [
        (CANCELLED, "cancel", "Nobody answered, so the command was declined."),
        ({}, "decline", "Nobody answered, so the command was declined."),
        (REFUSED, "decline", "Your editor could not ask you, so the command was declined."),
    ],
    ids=repr,
)
async def test_what_nobody_decided_is_a_no_that_says_so(reply: Any, choice: str, note: str) -> None:
    async with asking(command()) as one:
        await one.reply(PERMISSION, reply)
        assert await one.settled() == AskOutcome(Answer(choice_id=choice), note)


async def test_for_a_client_that_went_away_the_turn_ends_with_the_question() -> None:
    """Nobody waits for it, and there is nobody to tell."""
    async with asking(command()) as one:
        await one.reply(PERMISSION, WireBroken("gone"))
        assert await one.settled() == AskOutcome(Answer(choice_id="cancel"), is_client_gone=True)


@pytest.mark.parametrize(
    "question",
    [
        asked("item/permissions/requestApproval", {"threadId": "t", "turnId": "u", "itemId": "i"}),
        command(threadId="child"),
        TOOL,
    ],
    ids=["permissions", "a subagent's command", "a tool of an MCP server"],
)
async def test_a_question_about_no_call_that_the_client_knows_gets_one_of_its_own(question: Question) -> None:
    """It is announced before and ended after."""
    async with asking(question) as one:
        params = await one.reply(PERMISSION, selected("accept"))
        assert (await one.settled()).answer == Answer(choice_id="accept")
        assert params["toolCall"]["toolCallId"] == OWN
        told = [(u["sessionUpdate"], u["toolCallId"], u.get("status")) for u in one.hand.updates[1:]]
        assert told == [("tool_call", OWN, "pending"), ("tool_call_update", OWN, "completed")]


async def test_a_tool_of_an_mcp_server_is_asked_about_at_its_call() -> None:
    """And may be allowed for as long as Codex offers."""
    async with asking(TOOL, call_id=ITEM) as one:
        params = await one.reply(PERMISSION, selected("acceptForSession"))
        assert (await one.settled()).answer == Answer(choice_id="acceptForSession")
        assert params["toolCall"]["toolCallId"] == ITEM
        assert [option["optionId"] for option in params["options"]] == [
            "accept",
            "acceptForSession",
            "decline",
        ]


def test_codex_understands_every_answer_that_is_given_here() -> None:
    """An approval for the session reaches it as one."""
    method = "mcpServer/elicitation/request"
    reply = questions.reply(method, TOOL, Answer(choice_id="acceptForSession"))
    assert reply == {"action": "accept", "content": {}, "_meta": {"persist": "session"}}


@pytest.mark.parametrize("question", [command(), TOOL, PAGE, user_input(COLOUR)], ids=lambda q: q.kind)
async def test_a_question_that_is_withdrawn_is_taken_back_from_the_client(question: Question) -> None:
    """The client hears so, and no call of ours stays open."""
    async with asking(question) as one:
        await one.call(PERMISSION)
        one.withdraw()
        with pytest.raises(asyncio.CancelledError):
            await one.end()
        assert one.hand.cancelled == [PERMISSION]


# ── forms ──────────────────────────────────────────────────────────────────


async def test_questions_of_the_model_are_a_form_where_the_client_has_forms() -> None:
    """The answers go back under their ids."""
    async with asking(user_input(COLOUR, WHY), FORMS) as one:
        content = {"colour": "Red", "why": "warm"}
        params = await one.reply(ELICITATION, {"action": "accept", "content": content})
        assert await one.settled() == AskOutcome(Answer(choice_id="accept", values=content))
        assert (params["mode"], params["sessionId"], params["message"]) == (
            "form",
            SESSION,
            "Codex has questions.",
        )
        assert list(params["requestedSchema"]["properties"]) == ["colour", "colour_note", "why"]


async def test_the_form_of_an_mcp_server_names_the_server() -> None:
    """So that nobody tells a stranger what was meant for Codex."""
    async with asking(elicited(requestedSchema=NAME), FORMS, call_id=ITEM) as one:
        params = await one.reply(ELICITATION, {"action": "accept", "content": {"name": "Ann"}})
        assert await one.settled() == AskOutcome(Answer(choice_id="accept", values={"name": "Ann"}))
        assert params["message"] == "The MCP server desk asks: Who are you?"
        assert params["toolCallId"] == ITEM


@pytest.mark.parametrize(
    ("reply", "choice", "note"),
    [
        ({"action": "decline"}, "decline", ""),
        ({"action": "cancel"}, "cancel", NOBODY),
        ({"action": "new"}, "decline", NOBODY),
        (None, "decline", NOBODY),
        ({"action": "accept", "content": {"name": 3}}, "decline", UNFIT),
    ],
    ids=repr,
)
async def test_a_form_that_nobody_filled_in_is_a_no(reply: Any, choice: str, note: str) -> None:
    """With a note, unless a person declined."""
    async with asking(elicited(requestedSchema=NAME), FORMS) as one:
        await one.reply(ELICITATION, reply)
        assert await one.settled() == AskOutcome(Answer(choice_id=choice), note)


@pytest.mark.parametrize("mode", ["openai/userVerification", "form"])
async def test_what_no_client_can_show_is_declined_aloud(mode: str) -> None:
    """A form that wants a nested object, or a way of asking that only OpenAI's own app has."""
    schema = {"type": "object", "properties": {"o": {"type": "object"}}, "required": ["o"]}
    async with asking(elicited(mode=mode, requestedSchema=schema), FORMS) as one:
        note = "The MCP server desk asked for what no editor can show: it was declined."
        assert await one.settled() == AskOutcome(DECLINE, note)


async def test_a_server_that_wants_only_a_yes_gets_a_permission_request() -> None:
    """A form without fields is a button."""
    async with asking(elicited(requestedSchema={"type": "object", "properties": {}}), FORMS) as one:
        await one.reply(PERMISSION, selected("accept"))
        assert await one.settled() == AskOutcome(Answer(choice_id="accept"))


# ── pages ──────────────────────────────────────────────────────────────────


async def test_a_page_is_opened_by_a_client_that_can() -> None:
    """And the room learns that it is to be told when the turn is over."""
    async with asking(PAGE, FORMS) as one:
        params = await one.reply(ELICITATION, {"action": "accept"})
        assert await one.settled() == AskOutcome(Answer(choice_id="accept"), url_id="q-1")
        assert (params["mode"], params["url"], params["elicitationId"]) == (
            "url",
            "https://example.org/login",
            "q-1",
        )


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        (selected("accept"), AskOutcome(Answer(choice_id="accept"))),
        (selected("decline"), AskOutcome(DECLINE)),
        (
            CANCELLED,
            AskOutcome(Answer(choice_id="cancel"), NOBODY),
        ),
    ],
    ids=["opened", "declined", "cancelled"],
)
@pytest.mark.parametrize("capabilities", [{}, FORMS], ids=["without", "refusing"])
async def test_a_page_is_shown_as_text_to_a_client_that_cannot_open_it(
    capabilities: dict[str, Any], reply: Any, end: AskOutcome
) -> None:
    """The person opens it, and says so."""
    async with asking(PAGE, capabilities) as one:
        if capabilities:
            await one.reply(ELICITATION, REFUSED)
        params = await one.reply(PERMISSION, reply)
        assert await one.settled() == end
        assert "https://example.org/login" in str(params["toolCall"]["content"])
        assert params["toolCall"]["title"] == "Open https://example.org/login"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/x",
        "javascript:alert(1)",
        "https://",
        "http://a b",
        "https://[x",
        "x",
        "",
    ],
)
async def test_only_web_pages_are_opened_on_the_word_of_a_server(url: str) -> None:
    """Nobody is asked, and the user is told."""
    async with asking(elicited(mode="url", url=url), FORMS) as one:
        end = await one.settled()
        assert end.answer == DECLINE
        assert "is no web page" in end.note
