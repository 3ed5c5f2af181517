"""Questions as text, and a person's next words as their answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex import questions
from laneway.core.model import DECLINE, Answer, Question
from laneway.rendering import forms
from laneway.rendering import questions_in_text as spoken
from laneway.rendering.questions_in_text import InText

COLOUR = {
    "id": "colour",
    "header": "Colour",
    "question": "Which colour?",
    "isOther": True,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": ""}],
}
WHY = {"id": "why", "header": "Why", "question": "Why that one?"}
SERVER: dict[str, Any] = {
    "name": {"type": "string", "title": "Name"},
    "age": {"type": "integer", "title": "Age"},
    "ok": {"type": "boolean", "title": "Sure"},
    "tags": {"type": "array", "title": "Tags", "items": {"type": "string", "enum": ["x", "y"]}},
    "mode": {"type": "string", "title": "Mode", "enum": ["fast", "slow"]},
    "size": {"type": "number", "title": "Size"},
}


def question_of(*asked: dict[str, Any]) -> Question:
    params = {"threadId": "t", "turnId": "u", "itemId": "i", "questions": [*asked]}
    question = questions.question_of("item/tool/requestUserInput", params, "q", None)
    assert question is not None
    return question


def elicited(*names: str, required: tuple[str, ...] = ()) -> InText:
    schema = {"type": "object", "properties": {n: SERVER[n] for n in names}, "required": [*required]}
    params = {"threadId": "t", "serverName": "desk", "message": "Who are you?", "requestedSchema": schema}
    question = questions.question_of("mcpServer/elicitation/request", params, "q", None)
    assert question is not None
    return in_text(question)


def in_text(question: Question) -> InText:
    return spoken.ask(question, forms.controls(question) or ())


def values(asked: InText, words: str) -> Any:
    answer = spoken.from_text(asked, words)
    assert isinstance(answer, Answer), answer.text
    assert answer.choice_id == "accept"
    return answer.values


# ── said ───────────────────────────────────────────────────────────────────


def test_one_question_is_said_with_its_options() -> None:
    """And with how to answer it, and how not to."""
    assert in_text(question_of(COLOUR)).text == (
        "Codex has a question.\n\n"
        "**Colour**\n"
        "Which colour?\n"
        "   - a) Red: warm\n"
        "   - b) Blue\n\n"
        "Answer with your next message. An option can be named by its letter. Say `skip` to give no answer."
    )


def test_several_questions_are_numbered_and_the_server_that_asks_is_named() -> None:
    """Nobody mistakes a server's question for Codex's own."""
    assert elicited("name", "age", required=("name",)).text == (
        "The MCP server desk asks: Who are you?\n\n"
        "1. **Name**\n\n"
        "2. **Age** (a whole number, may be left out)\n\n"
        "Answer with your next message. Give each answer a line of its own that starts with its number, "
        "such as `1: …`. Say `skip` to give no answer."
    )


def test_whoever_is_asked_for_a_secret_is_told_where_it_goes() -> None:
    """A conversation is kept."""
    asked = in_text(question_of({**WHY, "isSecret": True}))
    assert "what you type stays readable in this conversation" in asked.text


def test_a_question_cannot_hide_itself_by_control_signs() -> None:
    """They are made visible."""
    asked = in_text(question_of({**WHY, "question": "Why?\x1b[2K"}))
    assert "Why?\\x1b[2K" in asked.text


# ── understood ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("a", "Red"),
        ("B)", "Blue"),
        ("blue", "Blue"),
        ("`Red`", "Red"),
        ("rather green\nor so", "rather green\nor so"),
        ("c", "c"),
    ],
    ids=repr,
)
def test_an_option_is_named_by_letter_or_text_and_own_words_stand(words: str, answer: str) -> None:
    """The model gets what the person meant."""
    assert values(in_text(question_of(COLOUR)), words) == {"colour": answer}


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("1: a\n2: it is\nwarm", {"colour": "Red", "why": "it is\nwarm"}),
        ("2) warm\n1. red", {"colour": "Red", "why": "warm"}),
        ("red\n\nwarm", {"colour": "Red", "why": "warm"}),
        ("red because it is warm", {"colour": "red because it is warm", "why": "red because it is warm"}),
    ],
    ids=repr,
)
def test_several_answers_are_told_apart_by_number_or_line(words: str, answer: Any) -> None:
    """Words that belong to no one question go to each: none is lost."""
    assert values(in_text(question_of(COLOUR, WHY)), words) == answer


def test_an_answer_that_is_missing_is_asked_for_again_and_the_others_are_kept() -> None:
    """One more message completes it."""
    again = spoken.from_text(in_text(question_of(COLOUR, WHY)), "2: warm")
    assert isinstance(again, InText)
    assert again.text.startswith("An answer for “Colour” is missing.")
    assert values(again, "blue") == {"colour": "Blue", "why": "warm"}


@pytest.mark.parametrize(
    ("name", "words", "value"),
    [
        ("age", " 42 ", 42),
        ("size", "1.5", 1.5),
        ("ok", "Yes", True),
        ("ok", "n", False),
        ("tags", "x, b", ["x", "y"]),
        ("mode", "SLOW", "slow"),
        ("name", "Ann", "Ann"),
    ],
)
def test_words_become_values_of_the_type_that_the_server_asked_for(name: str, words: str, value: Any) -> None:
    """An MCP server reads JSON, not prose."""
    assert values(elicited(name, required=(name,)), words) == {name: value}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("age", "forty"),
        ("age", "1.5"),
        ("size", "nan"),
        ("size", "inf"),
        ("ok", "maybe"),
        ("tags", "x, z"),
        ("mode", "c"),
    ],
)
def test_what_a_server_could_not_read_is_asked_again_with_the_reason(name: str, words: str) -> None:
    """The question stays open."""
    again = spoken.from_text(elicited(name, required=(name,)), words)
    assert isinstance(again, InText)
    assert again.text.startswith(f"“{words}” is no answer for “{SERVER[name]['title']}”.")
    assert spoken.from_text(again, "skip") == DECLINE


def test_what_may_be_left_out_is_left_out() -> None:
    """Not filled with nothing."""
    assert values(elicited("name", "age", "ok", required=("name",)), "1: Ann") == {"name": "Ann"}


def test_what_was_said_for_a_field_is_not_dropped_because_it_may_be_left_out() -> None:
    """The person is told that it could not be read."""
    again = spoken.from_text(elicited("name", "age", required=("name",)), "1: Ann\n2: forty")
    assert isinstance(again, InText)
    assert again.values == {"name": "Ann"}
    assert again.text.startswith("“forty” is no answer for “Age”.")


def test_words_for_several_typed_fields_must_say_which() -> None:
    """A guess could put a value where it does not belong."""
    again = spoken.from_text(elicited("name", "age", "ok"), "Ann, 42, yes")
    assert isinstance(again, InText)
    assert again.text.startswith("Please start each answer with its number.")


@pytest.mark.parametrize("words", ["skip", " Skip ", "/skip"])
def test_skip_declines(words: str) -> None:
    """Everybody asked can say no."""
    assert spoken.from_text(in_text(question_of(COLOUR, WHY)), words) == DECLINE


def test_an_empty_message_is_no_answer() -> None:
    """An image alone, say."""
    again = spoken.from_text(in_text(question_of(COLOUR)), " \n")
    assert isinstance(again, InText)
    assert again.text.startswith("There was no answer in that.")


@given(st.text() | st.lists(st.sampled_from(["1:", "2)", "a", "9. x", "", "x,y", "-3"])).map("\n".join))
def test_whatever_is_said_is_an_answer_that_fits_or_the_question_again(words: str) -> None:
    """No words crash it, and none fill a field with what it cannot hold."""
    asked = elicited(*SERVER, required=("age",))
    answer = spoken.from_text(asked, words)
    if isinstance(answer, Answer) and answer != DECLINE:
        assert "age" in answer.values
        held = {field.name: field for field in asked.fields}
        assert all(forms.fits(held[name], value) for name, value in answer.values.items())
