"""Checks the arguments of a tool call against its schema: the part of JSON Schema that our tools use.

Pure. An error is one sentence, for the model that made the call or the front end that passes it on.
A null counts as an argument that was not given: models send it for everything optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_SHOWN_CHARS = 100
"""Of an unknown argument's name, in the error sentence."""
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}


class BadArguments(ValueError):
    """The text is a sentence."""


def checked(name: str, schema: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """The call's arguments without nulls, each of the type that the schema of the tool `name` demands."""
    if not isinstance(arguments, dict):
        raise BadArguments(f"{name} takes an object of arguments.")
    present = {key: value for key, value in arguments.items() if value is not None}
    missing = [key for key in schema.get("required", []) if key not in present]
    if missing:
        raise BadArguments(f"{name} needs {', '.join(missing)}.")
    known = schema.get("properties", {})
    if schema.get("additionalProperties") is False:
        unknown = [key for key in present if key not in known]
        if unknown:
            raise BadArguments(f"{name} has no argument {unknown[0][:MAX_SHOWN_CHARS]}.")
    return {key: _checked(key, known.get(key, {}), value) for key, value in present.items()}


def _checked(key: str, schema: Mapping[str, Any], value: Any) -> Any:
    kind = schema.get("type")
    if kind is not None:
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON makes no difference between 1 and 1.0
        if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
            article = "an" if kind[0] in "aio" else "a"
            raise BadArguments(f"{key} must be {article} {kind}.")
    if "enum" in schema and value not in schema["enum"]:
        raise BadArguments(f"{key} must be one of {', '.join(map(str, schema['enum']))}.")
    if "minimum" in schema and value < schema["minimum"]:
        raise BadArguments(f"{key} must be at least {schema['minimum']}.")
    return value
