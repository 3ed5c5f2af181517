"""Questions as the page shows them, and what was filled in there as answers."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.core.model import Answer, Choice, Field, FieldOption, Question
from laneway.doors.console.panels.question_view import AnswerRefused, FilledIn, answer_of, question_view
from tests.doors.console.panels.support import command_question

YES = Choice(choice_id="accept", label="Submit", grants="once")
NO = Choice(choice_id="decline", label="Decline", grants="nothing")


def form(schema: Any = None, **more: Any) -> Question:
    facts: dict[str, Any] = {"kind": "elicitation", "command": None, "choices": (YES, NO), "schema": schema}
    return command_question(**{**facts, **more})


NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_a_command_is_shown_with_its_folder_and_the_choices_in_order() -> None:
    """The yes first; whether a no takes words is told."""
    view = question_view(command_question(reason="to\nbuild"))
    assert (view["title"], view["code"], view["cwd"]) == ("rm -r build", "rm -r build", "/work")
    assert view["notes"] == ["Reason: to build"]
    assert [(each["choice_id"], each["grants"], each["takes_words"]) for each in view["choices"]] == [
        ("accept", "once", False),
        ("decline", "nothing", True),
    ]


def test_words_go_with_a_no_that_takes_them() -> None:
    """And with nothing else."""
    question = command_question()
    no = FilledIn(question_id="q1", choice_id="decline", words="use make clean")
    assert answer_of(question, no) == Answer(choice_id="decline", words="use make clean")
    yes = FilledIn(question_id="q1", choice_id="accept", words="use make clean")
    assert answer_of(question, yes) == Answer(choice_id="accept")


def test_an_answer_that_was_not_offered_is_refused() -> None:
    """As is one that the page did not show: approval fails closed."""
    with pytest.raises(AnswerRefused, match="no such answer"):
        answer_of(command_question(), FilledIn(question_id="q1", choice_id="acceptForSession"))


def test_a_form_is_shown_and_checked() -> None:
    """Field by field; what is not asked for is left out."""
    question = form(NAME)
    (field,) = question_view(question)["fields"]
    assert (field["name"], field["kind"], field["is_required"]) == ("name", "string", True)
    filled = FilledIn(question_id="q1", choice_id="accept", content={"name": "x", "more": 1})
    assert answer_of(question, filled) == Answer(choice_id="accept", values={"name": "x"})
    with pytest.raises(AnswerRefused, match="not complete"):
        answer_of(question, FilledIn(question_id="q1", choice_id="accept"))
    declined = FilledIn(question_id="q1", choice_id="decline")
    assert answer_of(question, declined) == Answer(choice_id="decline")


def test_a_form_that_cannot_be_shown_can_only_be_declined() -> None:
    """A required field that no page of ours can show."""
    schema = {"type": "object", "properties": {"deep": {"type": "object"}}, "required": ["deep"]}
    view = question_view(form(schema))
    assert (view["can_fill"], [each["choice_id"] for each in view["choices"]]) == (False, ["decline"])
    with pytest.raises(AnswerRefused, match="cannot show"):
        answer_of(form(schema), FilledIn(question_id="q1", choice_id="accept"))


def test_a_models_own_question_takes_an_option_or_other_words() -> None:
    """Secrets are marked, so that the page hides what is typed."""
    fields = (
        Field(
            field_id="db",
            header="Database",
            text="Which?",
            options=(FieldOption(label="SQLite"),),
            allows_other=True,
        ),
        Field(field_id="key", header="Key", text="Its key", is_secret=True),
    )
    question = form(kind="input", fields=fields)
    shown = question_view(question)["fields"]
    assert [(each["name"], each["is_secret"]) for each in shown] == [("db", False), ("key", True)]
    filled = FilledIn(
        question_id="q1", choice_id="accept", content={"db": None, "db_note": "DuckDB", "key": "k"}
    )
    assert answer_of(question, filled).values == {"db": "DuckDB", "key": "k"}
