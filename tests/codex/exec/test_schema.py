"""Our part of JSON Schema says what `jsonschema` says, and refuses what it does not know."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.exec import schema as module
from laneway.codex.exec.output import output_problem, structured_output
from laneway.codex.exec.schema import FORMS, META, BadSchema, check_schema, problems, text_problem

KEYS = ("a", "b", "c")
NUMBERS = st.integers(-4, 12) | st.sampled_from([0.5, 1.0, 2.5, -3.0, 1e300])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text("abé", max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
SIZES = st.integers(0, 4)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=lambda value: json.dumps(value)),
        "const": VALUES,
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "exclusiveMinimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "multipleOf": st.integers(1, 4),
        "minLength": SIZES,
        "maxLength": SIZES,
        "pattern": st.sampled_from(["^a", "b$", "é", "^(a|b)*$"]),
        "minItems": SIZES,
        "maxItems": SIZES,
        "required": st.lists(st.sampled_from(KEYS), max_size=2, unique=True),
        "format": st.just("date-time"),
        "title": st.text(max_size=3),
        "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
    },
)
SCHEMAS = st.recursive(
    st.booleans() | LEAVES,
    lambda inner: st.builds(
        lambda leaf, more: {**leaf, **more},
        LEAVES,
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
                "additionalProperties": inner,
                "items": inner,
                "anyOf": st.lists(inner, min_size=1, max_size=3),
                "allOf": st.lists(inner, min_size=1, max_size=2),
                "oneOf": st.lists(inner, min_size=1, max_size=2),
            },
        ),
    ),
    max_leaves=6,
)
ROOTS = st.builds(
    lambda root, x, y: {**(root if isinstance(root, dict) else {}), "$defs": {"x": x, "y": y}},
    SCHEMAS,
    LEAVES.map(lambda leaf: {key: leaf[key] for key in leaf if key != "$ref"}),
    SCHEMAS,
)


@given(root=ROOTS, value=VALUES)
def test_a_value_fits_if_jsonschema_says_so(root: dict[str, Any], value: Any) -> None:
    """For every schema that is supported; one that leads back to itself is not."""
    try:
        check_schema(root)
    except BadSchema as wrong:
        assert "leads back to itself" in str(wrong)  # noqa: PT017  the schemas are well-formed otherwise
        return
    expected = jsonschema.Draft202012Validator(root).is_valid(value)
    found = list(problems(root, root, value))
    assert (found == []) == expected
    assert all(found)
    assert (text_problem(root, json.dumps(value)) is None) == expected


KEYWORDS = st.sampled_from([*FORMS, "patternProperties", "not"])


@given(root=st.dictionaries(KEYWORDS, VALUES, max_size=3))
def test_a_schema_that_passes_is_one_for_jsonschema_too(root: dict[str, Any]) -> None:
    """Whatever stands where."""
    try:
        check_schema(root)
    except BadSchema:
        return
    jsonschema.Draft202012Validator.check_schema(root)


def test_the_schema_of_schemas_is_one_itself() -> None:
    """And is what is checked with."""
    check_schema(META)
    jsonschema.Draft202012Validator.check_schema(META)


@pytest.mark.parametrize(
    ("root", "words"),
    [
        (True, "$ must be of type object."),
        ([], "$ must be of type object or boolean."),
        (None, "$ must be of type object or boolean."),
        ({"type": "text"}, "$.type fits 0 of the 2 schemas of anyOf."),
        ({"patternProperties": {}}, "$.patternProperties is not allowed."),
        ({"properties": {"a": {"not": {}}}}, "$.properties.a.not is not allowed."),
        ({"items": [{}]}, "$.items must be of type object or boolean."),
        ({"minLength": -1}, "$.minLength must be at least 0."),
        ({"required": "a"}, "$.required must be of type array."),
        ({"enum": []}, "$.enum must have 1 items or more."),
        ({"pattern": "("}, "( is no regular expression."),
        ({"$ref": "other.json"}, "$.$ref must match ^#(/|$)."),
        ({"$ref": "#/$defs/x"}, "#/$defs/x leads to no schema."),
        ({"default": {"a": 1}, "$ref": "#/default"}, "#/default leads to no schema."),
        ({"$ref": "#"}, "#: a $ref leads back to itself."),
        ({"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#"}]}]}, "#: a $ref leads back to itself."),
        ({"title": "x" * 300_000}, "$ is longer than 262144 characters."),
    ],
)
def test_a_schema_that_is_wrong_or_not_supported_is_refused(root: Any, words: str) -> None:
    """With the first thing that is."""
    with pytest.raises(BadSchema) as caught:
        check_schema(root)
    assert str(caught.value) == words


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    """And one with thousands of alternatives takes no time."""
    deep: dict[str, Any] = {}
    for _ in range(2000):
        deep = {"items": deep}
    with pytest.raises(BadSchema, match="nested too deeply"):
        check_schema(deep)
    chain = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    check_schema({"$ref": "#/$defs/d0", "$defs": {**chain, "d40": {"type": "null"}}})


@pytest.mark.parametrize(
    ("root", "text", "problem"),
    [
        ({"type": "object"}, "{}", None),
        ({"type": "object"}, "[]", "$ must be of type object."),
        ({"items": {"properties": {"a": False}}}, '[{}, {"a": 1}]', "$[1].a is not allowed."),
        ({"required": ["a", "b"]}, '{"a": 1}', "$ needs b."),
        ({"additionalProperties": False, "properties": {"a": {}}}, '{"a": 1, "b": 1}', "$.b is not allowed."),
        ({"const": 1}, "true", "$ must be one of [1]."),
        ({"const": 1}, "1.0", None),
        ({"const": {"a": [1]}}, '{"a": [true]}', '$ must be one of [{"a": [1]}].'),
        ({"type": "integer"}, "1e2", None),
        ({"type": "integer"}, "1e999", "$ must be of type integer."),
        ({"multipleOf": 0.1}, "0.3", None),
        ({"multipleOf": 0.1}, "0.35", "$ must be a multiple of 0.1."),
        ({"multipleOf": 3}, "1e999", "$ must be a multiple of 3."),
        ({"oneOf": [{}, {}]}, "1", "$ fits 2 of the 2 schemas of oneOf."),
        ({}, "not JSON", "the last message is not JSON."),
        ({}, "[NaN]", "the last message is not JSON."),
        ({}, "-Infinity", "the last message is not JSON."),
        ({}, "9" * 5000, "the last message is not JSON."),
        ({}, "[" * 100_000, "the last message is nested too deeply."),
        ({"items": {"$ref": "#"}}, "[" * 500 + "]" * 500, "the last message is nested too deeply."),
    ],
)
def test_what_is_wrong_with_an_output(root: Any, text: str, problem: str | None) -> None:
    """The first thing, in a sentence that says where."""
    check_schema(root)
    assert text_problem(root, text) == problem
    assert output_problem(root, text) == problem


def test_a_check_that_takes_for_ever_is_given_up() -> None:
    """A pattern, and alternatives within alternatives: nobody waits for them."""
    text = json.dumps("a" * 40 + "b")
    late = "checking the last message took more than 0.5 s."
    assert output_problem({"pattern": "^(a+)+$"}, text, timeout_s=0.5) == late
    node = {"anyOf": [{"items": {"$ref": "#"}, "maxItems": 1}] * 3, "type": "array"}
    assert output_problem(node, "[" * 60 + "1" + "]" * 60, timeout_s=0.5) == late


def test_without_a_message_there_is_no_output() -> None:
    """Nor is there one that cannot be checked."""
    assert output_problem({}, None) == "there is no last message."
    assert structured_output(None) is None
    assert structured_output("x") is None
    assert structured_output('{"a": 1}') == {"a": 1}


def test_the_program_needs_no_package_of_ours() -> None:
    """It is run without any."""
    with open(str(module.__file__)) as file:
        assert "laneway" not in file.read().split('"""', 2)[2]
