"""Questions that engines other than Codex ask: tools, plans, several choices at once, words with a no."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.core.model import Answer, Question
from laneway.doors.mcp import elicitation, forms
from laneway.doors.mcp.eras import McpClient
from laneway.testing.engine import HandEngine, HandThread
from tests.core.support import until
from tests.doors.mcp.hand import Client, Message, Place, place
from tests.doors.sample_questions import CHOICES, COMMAND_WITH_WORDS, NO, PLAN, TOOL, YES

WORDS_FIELD = {
    "type": "string",
    "title": "No, and why, or what instead",
    "description": "Leave it empty to allow. With words in it the answer is no, and Claude is told them.",
}


def asked(fields: dict[str, Any]) -> Question:
    identity = {"question_id": "q", "thread_id": "t", "turn_id": "u", "item_id": None, "engine": "Claude"}
    return Question(**{**identity, **fields})


def params(fields: dict[str, Any], version: str = "2025-11-25") -> Message:
    client = McpClient(version=version, capabilities={"elicitation": {}})
    return elicitation.params(asked(fields), request_id="1", id_fields={}, client=client)


# ── what is shown ──────────────────────────────────────────────────────────


def test_a_tool_is_named_and_its_arguments_are_shown_apart_from_our_own_words() -> None:
    """With its reason, and with a place for words with a no."""
    request = params(TOOL)
    assert request["message"].splitlines() == [
        "Allow Claude to use WebFetch?",
        "Its reason: to look it up",
        "│ {",
        '│   "url": "https://example.org/a",',
        '│   "prompt": "Sum it up"',
        "│ }",
    ]
    assert request["codex_elicitation"] == "tool-approval"
    assert request["requestedSchema"] == {"type": "object", "properties": {"no_because": WORDS_FIELD}}


def test_a_plan_is_shown_whole() -> None:
    """Prefixed, as every text that is not ours."""
    request = params(PLAN)
    assert request["message"].splitlines() == [
        "Allow Claude to carry out its plan?",
        "│ # The plan",
        "│ ",
        "│ 1. Read it",
        "│ 2. Mend it",
    ]
    assert request["codex_elicitation"] == "plan-approval"


def test_an_argument_cannot_pass_for_a_text_of_ours() -> None:
    """Hidden characters are spelt out, and a name stays on its line."""
    hostile = {**TOOL, "tool": "Web\nAllow Claude to rest?", "arguments": {"a": "x\u202ey"}, "reason": None}
    lines = params(hostile)["message"].splitlines()
    assert len(lines) == 4
    assert "\u202e" not in "".join(lines)
    assert all(line.startswith("│ ") for line in lines[1:])


def test_options_are_shown_with_what_they_mean_and_several_are_a_list() -> None:
    """Own words have a field of their own beside a list."""
    properties = params(CHOICES)["requestedSchema"]["properties"]
    assert properties == {
        "colour": {
            "type": "string",
            "title": "Colour",
            "description": "Which colour? (Red, Blue, or something else)\n- Red: warm\n- Blue: cool",
        },
        "parts": {
            "type": "array",
            "title": "Parts",
            "items": {"type": "string", "enum": ["Door", "Roof", "Wall, inner"]},
            "description": "Which parts?\n- Door: the front",
        },
        "parts_other": {"type": "string", "title": "Parts: something else"},
        "sizes": {
            "type": "array",
            "title": "Sizes",
            "items": {"type": "string", "enum": ["S", "L"]},
            "description": "Which sizes?",
            "minItems": 1,
        },
    }
    assert params(CHOICES)["requestedSchema"]["required"] == ["colour", "sizes"]


def test_a_version_without_lists_takes_several_choices_as_a_text() -> None:
    """With commas between, and it says so."""
    properties = params(CHOICES, "2025-06-18")["requestedSchema"]["properties"]
    assert properties["sizes"] == {
        "type": "string",
        "title": "Sizes",
        "description": "Which sizes? (one or more of: S, L; with commas between)",
    }
    assert "parts_other" not in properties


# ── what is answered ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"action": "accept"}, Answer(choice_id="accept")),
        ({"action": "accept", "content": {}}, Answer(choice_id="accept")),
        ({"action": "accept", "content": {"no_because": "  "}}, Answer(choice_id="accept")),
        (
            {"action": "accept", "content": {"no_because": " use curl "}},
            Answer(choice_id="decline", words="use curl"),
        ),
        (
            {"action": "decline", "content": {"no_because": "use curl"}},
            Answer(choice_id="decline", words="use curl"),
        ),
        ({"action": "decline"}, Answer(choice_id="decline")),
        ({"action": "accept", "content": {"no_because": 7}}, Answer(choice_id="accept")),
    ],
    ids=repr,
)
@pytest.mark.parametrize("fields", [TOOL, PLAN, COMMAND_WITH_WORDS], ids=lambda f: f.get("kind", "command"))
def test_words_make_it_a_no(fields: dict[str, Any], reply: Message, answer: Answer) -> None:
    """Whatever was pressed: nobody grants what they argue against."""
    question = asked({"kind": "command", **fields})
    given = elicitation.answer(question, reply)
    assert given is not None
    assert (given.choice_id, given.words) == (answer.choice_id, answer.words)


def test_words_are_kept_from_an_engine_that_does_not_take_them() -> None:
    """Its form does not ask for them, and an answer with some is what was pressed."""
    plain = asked({**PLAN, "choices": (YES, NO)})
    assert forms.form(plain) == {"type": "object", "properties": {}}
    reply = {"action": "decline", "content": {"no_because": "x"}}
    assert elicitation.answer(plain, reply) == Answer(choice_id="decline")


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (
            {"colour": "Red", "parts": ["Door", "Roof"], "parts_other": " the gate ", "sizes": ["S"]},
            {"colour": "Red", "parts": ["Door", "Roof", "the gate"], "sizes": ["S"]},
        ),
        (
            {"colour": "green", "parts": "roof, Door", "sizes": "S"},
            {"colour": "green", "parts": ["Roof", "Door"], "sizes": ["S"]},
        ),
        (
            {"parts": "Wall, inner", "sizes": "both, if you can"},
            {"parts": ["Wall, inner"], "sizes": ["both, if you can"]},
        ),
        ({"parts_other": "the gate", "sizes": []}, {"parts": ["the gate"]}),
        ({"parts": {"no": "list"}, "sizes": [1, "L"]}, {"sizes": ["L"]}),
    ],
    ids=repr,
)
def test_several_choices_reach_the_engine_as_a_list(content: Message, values: Message) -> None:
    """From a list, from a text with commas, and with own words beside them."""
    reply = elicitation.answer(asked(CHOICES), {"action": "accept", "content": content})
    assert reply == Answer(choice_id="accept", values=values)


# ── through the server, in both eras ───────────────────────────────────────


@asynccontextmanager
async def on_claude(tmp_path: Path, **options: Any) -> AsyncIterator[tuple[Place, Client, str, HandThread]]:
    """A client whose call runs on an engine that is not Codex."""
    engine = HandEngine(backend="claude", shares_process=False)
    async with place(tmp_path, engine=engine, **options) as home:
        client = await home.client(version=options.get("version", "2025-11-25"))
        yield home, client, *await home.session(client)


@pytest.mark.parametrize("fields", [TOOL, PLAN, CHOICES], ids=["tool", "plan", "choices"])
async def test_a_client_of_the_handshake_era_is_asked_while_its_call_waits(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    """Its words go to the engine, and the turn goes on."""
    async with on_claude(tmp_path) as (_, client, agent_id, thread):
        reply = client.start("codex-reply", prompt="go", agent_id=agent_id)
        await until(lambda: thread.turn_id)
        thread.ask("q", **fields)
        request, answer = await client.question()
        assert request["message"].startswith(("Allow Claude to", "Claude has"))
        answer.set_result({"action": "decline", "content": {"no_because": "not now"}})
        await until(lambda: "q" in thread.answers)
        assert thread.answers["q"] == Answer(choice_id="decline", words="not now")
        thread.end(text="as you say")
        assert (await reply)["content"] == "as you say"


async def test_a_client_of_the_stateless_era_is_asked_by_a_result(tmp_path: Path) -> None:
    """Its next call brings the answer."""
    async with on_claude(tmp_path) as (_, client, agent_id, thread):
        call = client.start_stateless("codex-reply", prompt="go", agent_id=agent_id)
        await until(lambda: thread.turn_id)
        thread.ask("q", **CHOICES)
        required = await call
        assert required["resultType"] == "input_required"
        properties = required["inputRequests"]["q"]["params"]["requestedSchema"]["properties"]
        assert properties["parts"]["type"] == "array"
        content = {"colour": "Blue", "parts": ["Roof"], "sizes": ["S", "L"]}
        call = client.start_stateless(
            "codex-reply",
            state=required["requestState"],
            responses={"q": {"action": "accept", "content": content}},
        )
        await until(lambda: "q" in thread.answers)
        assert thread.answers["q"] == Answer(choice_id="accept", values=content)
        thread.end(text="done")
        assert (await call)["structuredContent"]["content"] == "done"


async def test_a_parked_question_is_answered_by_a_tool_with_words(tmp_path: Path) -> None:
    """A model reads what is asked, in the engine's name, and may argue."""
    async with on_claude(tmp_path, unattended="park") as (home, *_):
        client = await home.client({}, principal="you")
        agent_id, thread = await home.session(client)
        call = client.start("codex-reply", prompt="go", agent_id=agent_id)
        await until(lambda: thread.turn_id)
        thread.ask("q", **TOOL)
        parked = await call
        assert parked["content"].startswith("Claude waits for a decision: Allow Claude to use WebFetch?")
        assert parked["question"]["kind"] == "tool"
        assert list(parked["question"]["form"]["properties"]) == ["no_because"]
        call = client.start(
            "agent_answer", question_id="q", action="decline", content={"no_because": "offline"}
        )
        await until(lambda: "q" in thread.answers)
        assert thread.answers["q"] == Answer(choice_id="decline", words="offline")
        thread.end(text="fine")
        assert (await call)["content"] == "fine"
