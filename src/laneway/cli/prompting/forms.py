"""The form fields of a question, and a typed line parsed as the value of a field.

Pure. Codex's own questions and the forms of MCP servers become the same fields.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from laneway.core.model import Question

YES = frozenset({"y", "yes", "true"})
NO = frozenset({"n", "no", "false"})
_KINDS = ("string", "number", "integer", "boolean")


class FormField(msgspec.Struct, frozen=True, kw_only=True):
    """One value that a question asks for."""

    field_id: str
    text: str
    kind: Literal["string", "number", "integer", "boolean"] = "string"
    options: tuple[str, ...] = ()
    """The labels of the options."""
    values: tuple[Any, ...] = ()
    """The value of each option."""
    takes_free_text: bool = True
    """Whether other answers than the options are allowed."""
    is_required: bool = True
    is_secret: bool = False


class CannotFill(Exception):
    """A required field cannot be typed as one line."""


def fields_of(question: Question) -> list[FormField]:
    """The fields to fill in after a yes; `CannotFill` if a required one cannot be typed."""
    if question.kind != "input":
        return _schema_fields(question.schema) if question.kind == "elicitation" else []
    return [
        FormField(
            field_id=field.field_id,
            text=field.text or field.header,
            options=tuple(option.label for option in field.options),
            values=tuple(option.label for option in field.options),
            takes_free_text=field.allows_other or not field.options,
            is_secret=field.is_secret,
        )
        for field in question.fields
    ]


def value_of(field: FormField, typed: str) -> Any:
    """The value of a typed line; `None` if it is not valid for the field."""
    if field.options:
        if typed.isdecimal() and 1 <= int(typed) <= len(field.options):
            return field.values[int(typed) - 1]
        chosen = [at for at, option in enumerate(field.options) if option.casefold() == typed.casefold()]
        if chosen:
            return field.values[chosen[0]]
        return typed if field.takes_free_text else None
    word = typed.casefold()
    match field.kind:
        case "boolean":
            return True if word in YES else False if word in NO else None
        case "string":
            return typed
        case kind:
            try:
                return int(word) if kind == "integer" else float(word)
            except ValueError:
                return None


def hint(field: FormField) -> str:
    """What may be typed, in a few words for the prompt."""
    expected = {"boolean": "y or n", "integer": "a whole number", "number": "a number"}.get(field.kind, "")
    if field.options:
        expected = "a number, or your own words" if field.takes_free_text else "a number"
    return f"{expected}; " if expected else ""


def _schema_fields(schema: Any) -> list[FormField]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    fields = []
    for name, subschema in properties.items():
        field = _schema_field(str(name), subschema, name in names) if isinstance(subschema, dict) else None
        if field is not None:
            fields.append(field)
        elif name in names:
            raise CannotFill(str(name))
    return fields


def _schema_field(name: str, subschema: dict[str, Any], is_required: bool) -> FormField | None:
    kind = subschema.get("type", "string")
    if kind not in _KINDS:
        return None
    words = [str(subschema[key]) for key in ("title", "description") if subschema.get(key)]
    enum = subschema.get("enum")
    values = tuple(enum) if isinstance(enum, list) else ()
    names = subschema.get("enumNames")
    labels = names if isinstance(names, list) and len(names) == len(values) else values
    titled = [each for each in subschema.get("oneOf") or [] if isinstance(each, dict) and "const" in each]
    if titled:
        values = tuple(each["const"] for each in titled)
        labels = [each.get("title", each["const"]) for each in titled]
    return FormField(
        field_id=name,
        text=": ".join(words) or name,
        kind=kind,
        options=tuple(map(str, labels)),
        values=values,
        takes_free_text=not values,
        is_required=is_required,
    )
