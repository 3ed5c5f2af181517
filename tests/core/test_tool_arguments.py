"""Arguments of tools against their schemas: taken as they are meant, or refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.core.tool_arguments import BadArguments, checked

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "share": {"type": "number"},
        "is_loud": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "list": {"type": "array"},
        "table": {"type": "object"},
    },
    "required": ["text"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given_arguments", "expected"),
    [
        ({"text": "x"}, {"text": "x"}),
        ({"text": "x", "count": None, "nonsense": None}, {"text": "x"}),
        ({"text": "x", "count": 3.0}, {"text": "x", "count": 3}),
        ({"text": "x", "share": 1, "is_loud": False}, {"text": "x", "share": 1, "is_loud": False}),
        (
            {"text": "", "list": [], "table": {}, "colour": "red"},
            {"text": "", "list": [], "table": {}, "colour": "red"},
        ),
    ],
)
def test_arguments_are_taken_as_models_say_them(given_arguments: Any, expected: dict[str, Any]) -> None:
    """A null is nothing, a whole number may have a point."""
    assert checked("tool", SCHEMA, given_arguments) == expected


@pytest.mark.parametrize(
    ("given_arguments", "sentence"),
    [
        ([], "tool takes an object of arguments."),
        (None, "tool takes an object of arguments."),
        ({}, "tool needs text."),
        ({"text": None}, "tool needs text."),
        ({"text": 1}, "text must be a string."),
        ({"text": "x", "count": "1"}, "count must be an integer."),
        ({"text": "x", "count": True}, "count must be an integer."),
        ({"text": "x", "count": 1.5}, "count must be an integer."),
        ({"text": "x", "count": 0}, "count must be at least 1."),
        ({"text": "x", "share": True}, "share must be a number."),
        ({"text": "x", "is_loud": 1}, "is_loud must be a boolean."),
        ({"text": "x", "colour": "green"}, "colour must be one of red, blue."),
        ({"text": "x", "list": {}}, "list must be an array."),
        ({"text": "x", "table": []}, "table must be an object."),
        ({"text": "x", "y" * 300: 1}, f"tool has no argument {'y' * 100}."),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(given_arguments: Any, sentence: str) -> None:
    """For the model, which can mend its call."""
    with pytest.raises(BadArguments) as caught:
        checked("tool", SCHEMA, given_arguments)
    assert str(caught.value) == sentence


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), _json) | _json)
def test_whatever_a_model_says_is_taken_by_the_schema_or_refused(given_arguments: Any) -> None:
    """Nothing else comes out, and nothing else is raised."""
    try:
        taken = checked("tool", SCHEMA, given_arguments)
    except BadArguments:
        return
    assert isinstance(taken["text"], str)
    assert taken.keys() <= SCHEMA["properties"].keys()
    assert taken.get("colour", "red") in ("red", "blue")
    assert taken.get("count", 1) >= 1
    assert type(taken.get("count", 1)) is int
