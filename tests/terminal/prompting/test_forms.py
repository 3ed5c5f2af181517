"""What a question wants filled in, and what a typed line means there."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.core.model import Field, FieldOption, Question
from laneway.terminal.prompting.forms import CannotFill, FormField, fields_of, value_of


def question(**fields: Any) -> Question:
    base: dict[str, Any] = {"question_id": "q", "thread_id": "t", "turn_id": None, "item_id": None}
    return Question(**{**base, "message": "m", "choices": (), **fields})


def test_the_form_of_an_mcp_server_becomes_fields() -> None:
    """Of the kinds that can be typed in a line."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name"},
            "age": {"type": "integer", "description": "How old?"},
            "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
            "kind": {"type": "string", "oneOf": [{"const": "a", "title": "First"}]},
            "tags": {"type": "array"},
        },
        "required": ["name"],
    }
    fields = fields_of(question(kind="elicitation", schema=schema))
    assert fields == [
        FormField(field_id="name", text="Name"),
        FormField(field_id="age", text="How old?", kind="integer", is_required=False),
        FormField(
            field_id="size",
            text="size",
            options=("Small", "Large"),
            values=("s", "l"),
            takes_free_text=False,
            is_required=False,
        ),
        FormField(
            field_id="kind",
            text="kind",
            options=("First",),
            values=("a",),
            takes_free_text=False,
            is_required=False,
        ),
    ]


def test_a_form_that_cannot_be_typed_is_said_to_be_one() -> None:
    """Instead of an answer with a hole in it."""
    schema = {"properties": {"tags": {"type": "array"}}, "required": ["tags"]}
    with pytest.raises(CannotFill):
        fields_of(question(kind="elicitation", schema=schema))


@pytest.mark.parametrize(
    ("field", "typed", "value"),
    [
        ({"options": ("red", "blue"), "values": ("r", "b")}, "2", "b"),
        ({"options": ("red", "blue"), "values": ("r", "b")}, "RED", "r"),
        ({"options": ("red",), "values": ("r",), "takes_free_text": False}, "green", None),
        ({"options": ("red",), "values": ("r",)}, "green", "green"),
        ({"kind": "integer"}, "7", 7),
        ({"kind": "integer"}, "seven", None),
        ({"kind": "number"}, "1.5", 1.5),
        ({"kind": "boolean"}, "Yes", True),
        ({"kind": "boolean"}, "n", False),
        ({"kind": "boolean"}, "perhaps", None),
        ({}, "2", "2"),
    ],
)
def test_a_line_is_read_as_the_field_wants_it(field: dict[str, Any], typed: str, value: Any) -> None:
    """What does not fit is no value."""
    assert value_of(FormField(field_id="f", text="t", **field), typed) == value


def test_what_codex_asks_takes_other_words_only_where_it_says_so() -> None:
    """Secrets stay secrets."""
    asked = (
        Field(
            field_id="a", header="A", text="Which?", options=(FieldOption(label="x"), FieldOption(label="y"))
        ),
        Field(field_id="b", header="B", text="", allows_other=True, options=(FieldOption(label="x"),)),
        Field(field_id="c", header="C", text="Key?", is_secret=True),
    )
    first, second, third = fields_of(question(kind="input", fields=asked))
    assert (first.takes_free_text, second.takes_free_text, second.text, third.is_secret) == (
        False,
        True,
        "B",
        True,
    )
