"""Forms: from Codex's questions and MCP servers' schemas to ACP's, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.core.model import Field, FieldOption, Question
from laneway.rendering import forms
from laneway.rendering.forms import Control
from tests.doors.acp.lint import book
from tests.doors.acp.questions.test_permission_options import JSON

PLACE = {"title": "Place", "description": "Where?"}
KEYWORDS = st.sampled_from(["type", "title", "enum", "oneOf", "items", "default", "properties", "required"])
WORDS = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null", "email", "a"])
SCHEMAS = st.recursive(
    JSON | WORDS | st.lists(WORDS),
    lambda inner: st.dictionaries(KEYWORDS, inner, max_size=5) | st.lists(inner, max_size=3),
    max_leaves=12,
)

OPTIONS = st.lists(st.fixed_dictionaries({"const": WORDS}, optional={"title": JSON}) | JSON, max_size=3)
PROPERTIES = st.fixed_dictionaries(
    {"type": WORDS},
    optional={
        "enum": st.lists(WORDS | JSON, max_size=3),
        "oneOf": OPTIONS,
        "items": st.fixed_dictionaries({"anyOf": OPTIONS}) | st.fixed_dictionaries({"enum": st.lists(WORDS)}),
        "default": JSON | WORDS | st.lists(WORDS),
        **dict.fromkeys(("minLength", "maxItems", "minimum", "maximum", "format", "title", "pattern"), JSON),
    },
)


def elicitation(schema: Any) -> Question:
    return Question(
        question_id="q",
        kind="elicitation",
        thread_id="t",
        turn_id="u",
        item_id=None,
        message="?",
        choices=(),
        schema=schema,
    )


def fields(properties: Any, *required: str) -> tuple[Control, ...]:
    found = forms.controls(elicitation({"type": "object", "properties": properties, "required": [*required]}))
    assert found is not None
    return found


def inputs(*asked: Field, params: Any = None) -> tuple[Control, ...]:
    question = Question(
        question_id="q",
        kind="input",
        thread_id="t",
        turn_id="u",
        item_id="i",
        message="?",
        choices=(),
        fields=asked,
        params=params,
    )
    found = forms.controls(question)
    assert found is not None
    return found


def property_of(told: Any) -> Any:
    return forms.schema(fields({"p": told}))["properties"]["p"]


# ── from MCP ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "told",
    [
        {"type": "string", **PLACE, "minLength": 1, "maxLength": 9, "pattern": "^a", "default": "ab"},
        {"type": "string", "title": "Mail", "format": "email"},
        {"type": "number", "title": "N", "minimum": 0.5, "maximum": 2, "default": 1.5},
        {"type": "integer", "title": "N", "minimum": 1, "maximum": 5, "default": 3},
        {"type": "boolean", "title": "B", "default": False},
        {"type": "string", "title": "E", "enum": ["a", "b"], "default": "b"},
        {"type": "string", "title": "E", "oneOf": [{"const": "a", "title": "An A"}]},
        {"type": "array", "title": "M", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 2},
        {
            "type": "array",
            "title": "M",
            "items": {"anyOf": [{"const": "a", "title": "A", "description": "first"}]},
            "default": ["a"],
        },
    ],
    ids=lambda told: str(told["type"]),
)
def test_every_kind_of_field_that_mcp_knows_arrives_whole(told: dict[str, Any]) -> None:
    """ACP took these over from MCP, keyword by keyword."""
    assert property_of(told) == told


def test_the_old_way_of_naming_options_becomes_the_new_one() -> None:
    """`enumNames` is unknown to ACP."""
    assert property_of(
        {"type": "string", "title": "E", "enum": ["a", "b"], "enumNames": ["An A", "A B"]}
    ) == {
        "type": "string",
        "title": "E",
        "oneOf": [{"const": "a", "title": "An A"}, {"const": "b", "title": "A B"}],
    }


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({"type": "string", "format": "password"}, {"type": "string"}),
        ({"type": "string", "minLength": -1, "maxLength": 2**40, "pattern": 3}, {"type": "string"}),
        ({"type": "string", "examples": ["a"], "x": {}}, {"type": "string"}),
        ({"type": "integer", "minimum": 1.5, "maximum": 2.0}, {"type": "integer", "maximum": 2}),
        ({"type": "integer", "default": "three"}, {"type": "integer"}),
        ({"type": "boolean", "default": 1}, {"type": "boolean"}),
        ({"type": "string", "enum": ["a"], "default": "z"}, {"type": "string", "enum": ["a"]}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": "string", "description": None, "title": 4}, {"type": "string"}),
    ],
    ids=repr,
)
def test_what_acp_cannot_say_is_dropped(told: dict[str, Any], kept: dict[str, Any]) -> None:
    """The server checks what it gets: a client need not."""
    assert property_of(told) == {"title": "p", **kept}


@pytest.mark.parametrize(
    "told",
    [{"type": "object"}, {"type": "array"}, {"enum": [1, 2]}, {}, None, {"type": ["string", "number"]}],
    ids=repr,
)
def test_a_field_that_cannot_be_shown_is_left_out_unless_it_is_required(told: Any) -> None:
    """A form without what the server must have would be a lie."""
    properties = {"odd": told, "name": {"type": "string"}}
    assert [field.name for field in fields(properties, "name")] == ["name"]
    schema = {"type": "object", "properties": properties, "required": ["odd"]}
    assert forms.controls(elicitation(schema)) is None


def test_a_form_that_requires_what_it_does_not_describe_cannot_be_asked() -> None:
    """Nobody could fill it in."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}
    assert forms.controls(elicitation(schema)) is None


def test_the_required_fields_are_named() -> None:
    """And nothing is, where nothing is required."""
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    assert forms.schema(fields(properties, "b"))["required"] == ["b"]
    assert "required" not in forms.schema(fields(properties))


@given(SCHEMAS | st.fixed_dictionaries({"properties": st.dictionaries(st.text(), SCHEMAS | PROPERTIES)}))
def test_whatever_a_server_asks_for_becomes_a_form_of_the_protocol_or_none(told: Any) -> None:
    """No nonsense passes through, and none crashes."""
    found = forms.controls(elicitation(told))
    if found is not None:
        assert list(book(frozenset()).judge("ElicitationSchema", forms.schema(found))) == []


# ── from Codex ─────────────────────────────────────────────────────────────

WARM = FieldOption(label="red", description="warm")
COLOUR = Field(
    field_id="c",
    header="Colour",
    text="Which?",
    options=(WARM, FieldOption(label="blue", description="blue")),
    allows_other=True,
)


def test_a_question_of_codex_with_options_also_takes_other_words() -> None:
    """The model is told by the label; a person reads what each means."""
    asked = inputs(COLOUR)
    assert forms.schema(asked) == {
        "type": "object",
        "properties": {
            "c": {
                "type": "string",
                "title": "Colour",
                "description": "Which?",
                "oneOf": [
                    {"const": "red", "title": "red", "description": "warm"},
                    {"const": "blue", "title": "blue"},
                    {
                        "const": "None of the above",
                        "title": "None of the above",
                        "description": "Say it in the next field.",
                    },
                ],
            },
            "c_note": {"type": "string", "title": "Something else, or a remark"},
        },
        "required": ["c"],
    }


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ({"c": "red"}, "red"),
        ({"c": "red", "c_note": "  "}, "red"),
        ({"c": "red", "c_note": "dark"}, ["red", "dark"]),
        ({"c": "None of the above", "c_note": "green"}, "green"),
        ({"c_note": "green"}, "green"),
        ({"c": "None of the above"}, "None of the above"),
    ],
    ids=repr,
)
def test_an_option_and_the_words_beside_it_are_one_answer(content: Any, answer: Any) -> None:
    """A list, in which the words come last."""
    assert forms.answers(inputs(COLOUR), content) == {"c": answer}


def test_a_field_may_be_called_like_the_note_of_another() -> None:
    """No answer ends up under the wrong question."""
    asked = inputs(COLOUR, Field(field_id="c_note", header="", text="Why?"))
    assert list(forms.schema(asked)["properties"]) == ["c", "c_note_", "c_note"]
    content = {"c": "red", "c_note": "because", "c_note_": "dark"}
    assert forms.answers(asked, content) == {"c": ["red", "dark"], "c_note": "because"}


def test_a_blank_answer_does_not_void_the_others_but_all_blank_is_no_answer() -> None:
    """Codex is never told an empty answer in silence."""
    asked = inputs(Field(field_id="a", header="", text="A?"), Field(field_id="b", header="", text="B?"))
    assert forms.answers(asked, {"a": "yes", "b": " "}) == {"a": "yes"}
    assert forms.answers(asked, {"a": "", "b": " "}) is None
    assert forms.answers(asked, None) is None


# ── back ───────────────────────────────────────────────────────────────────

MIXED = {
    "name": {"type": "string"},
    "age": {"type": "integer"},
    "size": {"type": "number"},
    "ok": {"type": "boolean"},
    "one": {"type": "string", "enum": ["a", "b"]},
    "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
}


def test_what_fits_is_read_and_what_was_not_asked_is_not() -> None:
    """The server gets the fields that it named."""
    content = {"name": "Ann", "age": 3, "size": 1.5, "ok": False, "one": "b", "many": ["a", "b"]}
    assert forms.values(fields(MIXED, *MIXED), {**content, "extra": 1}) == content


@pytest.mark.parametrize(
    "wrong",
    [{"name": 1}, {"age": 1.5}, {"age": True}, {"size": "1"}, {"ok": 1}, {"one": "z"}, {"many": ["z"]}],
    ids=repr,
)
def test_what_does_not_fit_is_no_answer(wrong: dict[str, Any]) -> None:
    """One wrong value voids the form: half an answer is not what the person gave."""
    assert forms.values(fields(MIXED), wrong) is None


def test_what_is_required_must_be_there_and_what_is_not_may_be_blank() -> None:
    """Forms send an empty text for a field that nobody touched."""
    asked = fields({"name": {"type": "string"}, "mail": {"type": "string", "format": "email"}}, "name")
    assert forms.values(asked, {"mail": "a@b.c"}) is None
    assert forms.values(asked, {"name": "Ann", "mail": ""}) == {"name": "Ann"}


@given(JSON | st.dictionaries(st.sampled_from(list(MIXED)), JSON))
def test_no_content_gets_through_that_is_not_of_the_form(content: Any) -> None:
    """Whatever a client returns."""
    asked = fields(MIXED, "name")
    read = forms.values(asked, content)
    if read is not None:
        assert "name" in read
        assert all(forms.fits(field, read[field.name]) for field in asked if field.name in read)
        assert set(read) <= set(MIXED)
