"""Point 8: a question of the model reaches a person by the best means there is; nobody else answers it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, Client, Message, Refused, Stage, Update, select, text
from tests.doors.acp.telling import Gates

ASK = "%ask Which colour? Red | Green\n%say Thanks."
TWO = {
    "questions": [
        {
            "id": "colour",
            "header": "Colour",
            "question": "Which colour?",
            "options": [
                {"label": "Red", "description": "Like fire."},
                {"label": "Green", "description": "Like grass."},
            ],
        },
        {
            "id": "size",
            "header": "Size",
            "question": "Which size?",
            "options": [
                {"label": "Small", "description": "As a mouse."},
                {"label": "Large", "description": "As a house."},
            ],
        },
    ]
}
ASK_TWO = f"%tool request_user_input {json.dumps(TWO)}\n%say Thanks."
NO_OPTIONS = Refused({"code": -32601, "message": "Method not found"})


def answers(here: Stage) -> Any:
    """What the model was told."""
    return answers_to(here, -1)


def answers_to(here: Stage, request: int) -> Any:
    outputs = [item for item in here.requests[request]["input"] if item["type"] == "function_call_output"]
    return json.loads(outputs[-1]["output"])["answers"]


def says(update: Update, words: str) -> bool:
    return update.kind == "agent_message_chunk" and words in text(update.body["content"])


def in_words(client: Client) -> None:
    """A client that shows neither forms nor options."""
    client.on_permission = lambda params: NO_OPTIONS


async def test_a_client_with_forms_shows_one(shared: Shared) -> None:
    """All questions at once; what is filled in is what the model hears."""
    async with shared.stage() as here, here.agent(capabilities=FULL) as client:
        session = await client.new()
        client.on_elicitation = lambda params: {
            "action": "accept",
            "content": {"colour": "Green", "size": "Enormous"},
        }
        assert await client.prompt(session, ASK_TWO) == {"stopReason": "end_turn"}
        assert answers(here) == {"colour": {"answers": ["Green"]}, "size": {"answers": ["Enormous"]}}
        assert client.messages(session) == ["Thanks."]
    assert [each["method"] for each in client.asked] == ["elicitation/create"]
    golden("point-08-questions-form", client.trace(without=("usage_update",)))


@pytest.mark.parametrize(("action", "notes"), [("decline", 0), ("cancel", 1)])
async def test_a_form_that_is_not_filled_in_is_no_answer(shared: Shared, action: str, notes: int) -> None:
    """Declined by a person, the model hears of no answer; dismissed, the person hears of it, too."""
    async with shared.stage() as here, here.agent(capabilities=FULL) as client:
        session = await client.new()
        client.on_elicitation = lambda params: {"action": action}
        assert await client.prompt(session, ASK) == {"stopReason": "end_turn"}
        assert answers(here) == {}
        assert len(client.of("notice", session)) == notes


async def test_a_client_without_forms_shows_options_one_by_one(shared: Shared) -> None:
    """As permission requests; the calls that carry them have an end."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        client.on_permission = lambda params: select(params, "1")
        assert await client.prompt(session, ASK_TWO) == {"stopReason": "end_turn"}
        assert answers(here) == {"colour": {"answers": ["Green"]}, "size": {"answers": ["Large"]}}
    names = [[option["name"] for option in each["params"]["options"]] for each in client.asked]
    assert [each[:2] for each in names] == [["Red", "Green"], ["Small", "Large"]]
    assert client.open_tool_calls() == {}
    golden("point-08-questions-options", client.trace(without=("usage_update",)))


async def test_where_nothing_can_be_shown_the_next_prompt_answers(shared: Shared) -> None:
    """The prompt ends with the question; what cannot be read is asked again, and then the turn goes on."""
    async with shared.stage() as here, here.agent() as client:
        in_words(client)
        session = await client.new()
        assert await client.prompt(session, ASK_TWO) == {"stopReason": "end_turn"}
        assert len(here.requests) == 1
        (question,) = client.messages(session)
        assert all(word in question for word in ("Which colour?", "Green", "Which size?", "`skip`"))
        assert await client.prompt(session, " ") == {"stopReason": "end_turn"}
        assert len(here.requests) == 1
        assert await client.prompt(session, "1: b\n2: as it comes") == {"stopReason": "end_turn"}
        assert answers(here) == {"colour": {"answers": ["Green"]}, "size": {"answers": ["as it comes"]}}
        assert client.messages(session)[-1] == "Thanks."
        assert await client.prompt(session, "%say Next.") == {"stopReason": "end_turn"}
        assert (client.messages(session)[-1], len(here.requests)) == ("Next.", 3)
    golden("point-08-questions-text", client.trace(without=("usage_update",)))


async def test_something_else_than_the_options_is_said_in_words(shared: Shared) -> None:
    """A person who picks that is asked in the conversation."""
    async with shared.stage() as here, here.agent() as client:
        client.on_permission = lambda params: select(params, "other")
        session = await client.new()
        assert await client.prompt(session, ASK) == {"stopReason": "end_turn"}
        assert await client.prompt(session, "Blue, as the sea") == {"stopReason": "end_turn"}
        assert answers(here) == {"choice": {"answers": ["Blue, as the sea"]}}


async def test_skip_gives_no_answer_and_the_turn_goes_on(shared: Shared) -> None:
    """The model hears that there is none."""
    async with shared.stage() as here, here.agent() as client:
        in_words(client)
        session = await client.new()
        await client.prompt(session, ASK)
        assert await client.prompt(session, "skip") == {"stopReason": "end_turn"}
        assert (answers(here), client.messages(session)[-1]) == ({}, "Thanks.")


async def test_a_question_that_waits_for_words_can_be_cancelled(shared: Shared) -> None:
    """The turn is over then, and the next prompt is no answer but a prompt."""
    async with shared.stage() as here, here.agent() as client:
        in_words(client)
        session = await client.new()
        await client.prompt(session, ASK)
        client.cancel(session)
        assert await client.prompt(session, "%say Next.") == {"stopReason": "end_turn"}
        assert client.messages(session)[-1] == "Next."
        assert len(here.requests) == 2


async def test_a_question_that_nobody_answers_expires(shared: Shared) -> None:
    """The model goes on without, the person is told, and the next prompt is no answer."""
    short = {"LANEWAY_APPROVAL_TIMEOUT_SECS": "1"}
    async with shared.stage() as here, here.agent(capabilities=FULL, env=short) as client:
        in_words(client)
        session = await client.new()
        client.on_elicitation = lambda params: Refused({"code": -32603, "message": "No forms today."})
        await client.prompt(session, ASK)
        notice = await client.wait_kind("notice", session)
        assert "nobody answered" in notice.body["title"]
        assert await client.prompt(session, "%say Next.") == {"stopReason": "end_turn"}
        assert client.messages(session)[1:] == ["Thanks.", "Next."]


async def test_a_question_that_found_no_prompt_to_end_ends_no_later_one(shared: Shared) -> None:
    """The first expires, the second is asked while nobody waits, and expires, too: it was nobody's."""
    short = {"LANEWAY_APPROVAL_TIMEOUT_SECS": "1"}
    async with shared.stage() as here, here.agent(env=short) as client:
        in_words(client)
        session = await client.new()
        await client.prompt(session, "%ask First? Red | Green\n%ask Second? Red | Green\n%say Over.")
        await client.wait_update(lambda each: says(each, "Over."))
        assert await client.prompt(session, "%run true\n%say Next.") == {"stopReason": "end_turn"}
        assert client.messages(session)[-1] == "Next."
        assert client.open_tool_calls() == {}


async def test_a_second_question_is_answered_by_the_prompt_that_follows_it(shared: Shared) -> None:
    """Asked while no prompt was there; the one that answers it ends with the turn, and not before."""
    short = {"LANEWAY_APPROVAL_TIMEOUT_SECS": "2"}
    async with shared.stage() as here, here.agent(env=short) as client:
        in_words(client)
        session = await client.new()
        await client.prompt(
            session, "%ask First? Red | Green\n%ask Second? Red | Green\n%run true\n%say Over."
        )
        await client.wait_update(lambda each: says(each, "Second?"))
        assert await client.prompt(session, "b") == {"stopReason": "end_turn"}
        assert answers_to(here, 2) == {"choice": {"answers": ["Green"]}}
        assert client.messages(session)[-1] == "Over."


async def test_a_prompt_that_was_sent_before_the_question_is_not_its_answer(shared: Shared) -> None:
    """It waits until somebody has answered, and is a prompt of its own then."""
    async with shared.stage() as here, here.agent() as client:
        in_words(client)
        session = await client.new()
        first = client.start_prompt(session, "%ask Delete it all? yes | no\n%say Deleted.")
        early = client.start_prompt(session, "%say yes, and run the tests")
        assert await first == {"stopReason": "end_turn"}
        assert await client.prompt(session, "no") == {"stopReason": "end_turn"}
        assert await early == {"stopReason": "end_turn"}
        assert answers_to(here, 1) == {"choice": {"answers": ["no"]}}
        assert client.messages(session)[1:] == ["Deleted.", "yes, and run the tests"]


async def test_a_prompt_that_waits_for_a_turn_makes_way_for_the_answer_to_its_next_question(
    shared: Shared,
) -> None:
    """The first question expired, the prompt waits for the turn to end, and the turn asks again."""
    short = {"LANEWAY_APPROVAL_TIMEOUT_SECS": "2"}
    async with shared.stage() as here, here.agent(capabilities=FULL, env=short) as client:
        in_words(client)
        client.on_elicitation = lambda params: Refused({"code": -32603, "message": "No forms today."})
        session = await client.new()
        with closing(Gates(here.work)) as gates:
            gate = gates.new()
            asks = f"%ask First? Red | Green\n%run read x < {gate.name}\n%ask Second? Red | Green\n%say Over."
            await client.prompt(session, asks)
            await client.wait_kind("notice", session)
            waiting = client.start_prompt(session, "%say Next.")
            await client.wait_kind("tool_call", session)
            gate.go()
        await client.wait_update(lambda each: says(each, "Second?"))
        assert await client.prompt(session, "a") == {"stopReason": "end_turn"}
        assert await waiting == {"stopReason": "end_turn"}
        assert client.messages(session)[-2:] == ["Over.", "Next."]


async def test_what_cannot_answer_a_question_is_told_so_and_the_question_stays(shared: Shared) -> None:
    """A command does not become an answer, and an image is not left out in silence."""
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    async with shared.stage() as here, here.agent() as client:
        in_words(client)
        session = await client.new()
        await client.prompt(session, ASK)
        assert await client.prompt(session, "/status") == {"stopReason": "end_turn"}
        assert "/status was not run" in client.messages(session)[-1]
        blocks = [{"type": "text", "text": "b"}, picture]
        error = await client.refusal("session/prompt", {"sessionId": session, "prompt": blocks})
        assert (error["code"], len(here.requests)) == (-32602, 1)
        assert await client.prompt(session, "b") == {"stopReason": "end_turn"}
        assert (answers(here), client.messages(session)[-1]) == (
            {"choice": {"answers": ["Green"]}},
            "Thanks.",
        )


async def test_a_form_that_stays_open_is_taken_back_when_the_question_expires(shared: Shared) -> None:
    """The client hears that its answer is no longer wanted."""
    short = {"LANEWAY_APPROVAL_TIMEOUT_SECS": "1"}
    async with shared.stage() as here, here.agent(capabilities=FULL, env=short) as client:
        session = await client.new()
        client.on_elicitation = lambda params: None
        assert await client.prompt(session, ASK) == {"stopReason": "end_turn"}
        (asked,) = client.asked
        taken_back: Message = await client.wait_heard(lambda each: each["method"] == "$/cancel_request")
        assert taken_back["params"] == {"requestId": asked["id"]}
        assert answers(here) == {}
        assert len(client.of("notice", session)) == 1
