"""The arguments of a tool against its schema: the small part of JSON Schema that our tools use.

Pure. What is wrong is told in one sentence, for the model that made the call or for the door that
passes it on. A null is an argument that was not given: models say it for everything optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_SHOWN_CHARS = 100
"""Of a name that somebody made up, in the sentence that tells of it."""
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


def checked(name: str, schema: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """The arguments that were given, each of the kind that the schema of the tool `name` wants."""
    if not isinstance(given, dict):
        raise BadArguments(f"{name} takes an object of arguments.")
    arguments = {key: value for key, value in given.items() if value is not None}
    missing = [key for key in schema.get("required", []) if key not in arguments]
    if missing:
        raise BadArguments(f"{name} needs {', '.join(missing)}.")
    known = schema.get("properties", {})
    if schema.get("additionalProperties") is False:
        unknown = [key for key in arguments if key not in known]
        if unknown:
            raise BadArguments(f"{name} has no argument {unknown[0][:MAX_SHOWN_CHARS]}.")
    return {key: _checked(key, known.get(key, {}), value) for key, value in arguments.items()}


def _checked(key: str, schema: Mapping[str, Any], value: Any) -> Any:
    kind = schema.get("type")
    if kind is not None:
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON knows no difference
        if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
            article = "an" if kind[0] in "aio" else "a"
            raise BadArguments(f"{key} must be {article} {kind}.")
    if "enum" in schema and value not in schema["enum"]:
        raise BadArguments(f"{key} must be one of {', '.join(map(str, schema['enum']))}.")
    if "minimum" in schema and value < schema["minimum"]:
        raise BadArguments(f"{key} must be at least {schema['minimum']}.")
    return value
