"""The form fields of a question, and a typed line parsed as the value of a field.

Pure. An engine's own questions and the forms of MCP servers become the same fields.
"""

from __future__ import annotations

import re
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
    is_multiple: bool = False
    """Whether several options may be chosen at once."""
    about: tuple[str, ...] = ()
    """What each option means; empty texts where that is not said."""


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
            is_multiple=field.is_multiple and bool(field.options),
            about=tuple(option.description for option in field.options),
        )
        for field in question.fields
    ]


def value_of(field: FormField, typed: str) -> Any:
    """The value of a typed line; `None` if it is not valid for the field."""
    if field.options:
        if field.is_multiple:
            return _several(field, typed)
        at = _option_at(field, typed)
        if at is not None:
            return field.values[at]
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


def _option_at(field: FormField, typed: str) -> int | None:
    """The option that is named by its number or its text."""
    typed = typed.strip()
    if typed.isdecimal() and 1 <= int(typed) <= len(field.options):
        return int(typed) - 1
    names = [option.casefold() for option in field.options]
    return names.index(typed.casefold()) if typed.casefold() in names else None


def _several(field: FormField, typed: str) -> list[Any] | None:
    """Options with commas between; else own words, where those are allowed."""
    is_one = _option_at(field, typed) is not None
    parts = [typed] if is_one else [part for part in re.split(r"[,;]", typed) if part.strip()]
    chosen = [_option_at(field, part) for part in parts]
    if chosen and None not in chosen:
        return [field.values[at] for at in dict.fromkeys(chosen) if at is not None]
    return [typed] if field.takes_free_text else None


def hint(field: FormField) -> str:
    """What may be typed, in a few words for the prompt."""
    expected = {"boolean": "y or n", "integer": "a whole number", "number": "a number"}.get(field.kind, "")
    if field.options:
        expected = "numbers with commas between" if field.is_multiple else "a number"
        expected += ", or your own words" if field.takes_free_text else ""
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
