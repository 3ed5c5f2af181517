"""Checks a value against a JSON Schema: the part that structured outputs of models know, and no more.

A schema with a keyword that is not known is refused before a job starts, never half-checked. Pure, and
imports the standard library only: `laneway.codex.exec.output` also runs this file as a program.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

Test = Callable[[Any, Any], bool]
MAX_SCHEMA_CHARS = 256 * 1024


class BadSchema(ValueError):
    """The text is a sentence."""


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    return is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": is_whole,
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: dict[str, tuple[str, Test, str]] = {
    "minimum": ("number", lambda value, bound: value >= bound, "must be at least {}"),
    "maximum": ("number", lambda value, bound: value <= bound, "must be at most {}"),
    "exclusiveMinimum": ("number", lambda value, bound: value > bound, "must be more than {}"),
    "exclusiveMaximum": ("number", lambda value, bound: value < bound, "must be less than {}"),
    "multipleOf": ("number", lambda value, of: _is_multiple(value, of), "must be a multiple of {}"),
    "minLength": ("string", lambda value, bound: len(value) >= bound, "must have {} characters or more"),
    "maxLength": ("string", lambda value, bound: len(value) <= bound, "must have {} characters or less"),
    "pattern": ("string", lambda value, bound: re.search(bound, value) is not None, "must match {}"),
    "minItems": ("array", lambda value, bound: len(value) >= bound, "must have {} items or more"),
    "maxItems": ("array", lambda value, bound: len(value) <= bound, "must have {} items or less"),
}
"""By keyword: the type that it is about, its test, and what it asks for."""
_CHOICES: dict[str, Test] = {
    "anyOf": lambda fitting, of: fitting > 0,
    "allOf": lambda fitting, of: fitting == of,
    "oneOf": lambda fitting, of: fitting == 1,
}
_MAPS = ("properties", "$defs", "definitions")
_INNER = {"$ref": "#"}
_NAMES = {"enum": [*_TYPES]}
FORMS: dict[str, Any] = {
    "type": {"anyOf": [_NAMES, {"type": "array", "items": _NAMES, "minItems": 1}]},
    "required": {"type": "array", "items": {"type": "string"}},
    "enum": {"type": "array", "minItems": 1},
    "pattern": {"type": "string"},
    "$ref": {"type": "string", "pattern": "^#(/|$)"},
    "multipleOf": {"type": "number", "exclusiveMinimum": 0},
    "items": _INNER,
    "additionalProperties": _INNER,
    **{name: {"type": "number"} for name in _BOUNDS if name.endswith("imum")},
    **{name: {"type": "integer", "minimum": 0} for name in _BOUNDS if name[3:] in ("Length", "Items")},
    **{name: {"type": "object", "additionalProperties": _INNER} for name in _MAPS},
    **{name: {"type": "array", "minItems": 1, "items": _INNER} for name in _CHOICES},
    **{name: {"type": "string"} for name in ("description", "format", "title", "$comment", "$schema")},
    "examples": {"type": "array"},
    "default": True,
    "const": True,
}
META = {"type": ["object", "boolean"], "properties": FORMS, "additionalProperties": False}
"""The schemas that are supported, as one of them."""


def check_schema(schema: Any) -> None:
    """Raises `BadSchema`, with what is wrong or not supported and where."""
    try:
        for problem in problems(META, {"type": "object", **_INNER}, schema):
            raise BadSchema(problem)
        if len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
            raise BadSchema(f"$ is longer than {MAX_SCHEMA_CHARS} characters.")
        every = {id(each): each for each in _schemas(schema) if isinstance(each, dict)}
        for each in every.values():
            _check_pattern(each.get("pattern", ""))
            target = _resolve(schema, each.get("$ref", "#"))
            if not isinstance(target, bool) and id(target) not in every:
                raise BadSchema(f"{each['$ref'][:200]} leads to no schema.")
        _check_ends(schema, every.values())
    except RecursionError:
        raise BadSchema("$ is nested too deeply.") from None


def problems(root: Any, schema: Any, value: Any, at: str = "$") -> Iterator[str]:
    """Sentences about what is wrong with a value; `root` is what references are resolved in."""
    if isinstance(schema, bool):
        yield from () if schema else (f"{at} is not allowed.",)
        return
    if "$ref" in schema:
        yield from problems(root, _resolve(root, schema["$ref"]), value, at)
    if "type" in schema and not any(_TYPES[name](value) for name in _listed(schema["type"])):
        yield f"{at} must be of type {' or '.join(_listed(schema['type']))}."
    for keyword, wanted in (("const", [schema.get("const")]), ("enum", schema.get("enum"))):
        if keyword in schema and not any(_is_same(value, each) for each in wanted or ()):
            yield f"{at} must be one of {json.dumps(wanted)[:200]}."
    for keyword, (kind, test, words) in _BOUNDS.items():
        if keyword in schema and _TYPES[kind](value) and not test(value, schema[keyword]):
            yield f"{at} {words.format(schema[keyword])}."
    for index, each in enumerate(value if isinstance(value, list) else ()):
        yield from problems(root, schema.get("items", True), each, f"{at}[{index}]")
    if isinstance(value, dict):
        yield from (f"{at} needs {key}." for key in schema.get("required", ()) if key not in value)
        for key, each in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", True))
            yield from problems(root, inner, each, f"{at}.{key[:100]}")
    for keyword, is_right in _CHOICES.items():
        choices = schema.get(keyword, ())
        fitting = sum(next(problems(root, each, value, at), None) is None for each in choices)
        if keyword in schema and not is_right(fitting, len(choices)):
            yield f"{at} fits {fitting} of the {len(choices)} schemas of {keyword}."


def text_problem(schema: Any, text: str) -> str | None:
    """The first problem of a text that should be JSON, or None."""
    try:
        value = json.loads(text, parse_constant=int)  # which NaN is not, nor Infinity
        return next(problems(schema, schema, value), None)
    except ValueError:
        return "the last message is not JSON."
    except RecursionError:
        return "the last message is nested too deeply."


def _schemas(schema: Any) -> Iterator[Any]:
    """A schema and all within it."""
    yield schema
    for keyword, value in schema.items() if isinstance(schema, dict) else ():
        inner = value.values() if keyword in _MAPS else value if keyword in _CHOICES else ()
        for each in [value] if keyword in ("items", "additionalProperties") else inner:
            yield from _schemas(each)


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError):
        raise BadSchema(f"{pattern[:200]} is no regular expression.") from None


def _check_ends(root: Any, every: Iterable[Any]) -> None:
    """Refuse a schema that leads back to itself without having gone into the value."""
    done: set[int] = set()

    def visit(schema: Any, passed: frozenset[int]) -> None:
        if isinstance(schema, bool) or id(schema) in done:
            return
        if id(schema) in passed:
            raise BadSchema("#: a $ref leads back to itself.")
        leads_to = [each for keyword in _CHOICES for each in schema.get(keyword, ())]
        for each in leads_to + ([_resolve(root, schema["$ref"])] if "$ref" in schema else []):
            visit(each, passed | {id(schema)})
        done.add(id(schema))

    for each in every:
        visit(each, frozenset())


def _resolve(root: Any, ref: str) -> Any:
    """What a JSON pointer leads to; None if nowhere."""
    found = root
    for part in ref.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            found = found.get(name) if isinstance(found, dict) else None
    return found


def _is_same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but not true."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_multiple(value: float, of: float) -> bool:
    """By their decimal digits: 0.3 is one of 0.1."""
    return math.isfinite(value) and Fraction(repr(value)) % Fraction(repr(of)) == 0


if __name__ == "__main__":
    given = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(text_problem(given["schema"], given["text"])))
