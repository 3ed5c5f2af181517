"""What a question wants filled in, field by field, and a typed line read as the value of one.

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
    field_id: str
    text: str
    kind: Literal["string", "number", "integer", "boolean"] = "string"
    options: tuple[str, ...] = ()
    """What is offered, as it is shown."""
    values: tuple[Any, ...] = ()
    """What each option stands for."""
    takes_words: bool = True
    """Whether anything but the options is an answer."""
    is_required: bool = True
    is_secret: bool = False


class CannotFill(Exception):
    """A form wants something that cannot be typed as one line."""


def fields_of(question: Question) -> list[FormField]:
    """What is to be filled in after a yes; `CannotFill` if a field that must be is beyond us."""
    if question.kind != "input":
        return _schema_fields(question.schema) if question.kind == "elicitation" else []
    return [
        FormField(
            field_id=field.field_id,
            text=field.text or field.header,
            options=field.options,
            values=field.options,
            takes_words=field.allows_other or not field.options,
            is_secret=field.is_secret,
        )
        for field in question.fields
    ]


def value_of(field: FormField, typed: str) -> Any:
    """A line as a value of the field; `None` if it is none."""
    if field.options:
        if typed.isdecimal() and 1 <= int(typed) <= len(field.options):
            return field.values[int(typed) - 1]
        chosen = [at for at, option in enumerate(field.options) if option.casefold() == typed.casefold()]
        if chosen:
            return field.values[chosen[0]]
        return typed if field.takes_words else None
    said = typed.casefold()
    match field.kind:
        case "boolean":
            return True if said in YES else False if said in NO else None
        case "string":
            return typed
        case kind:
            try:
                return int(said) if kind == "integer" else float(said)
            except ValueError:
                return None


def hint(field: FormField) -> str:
    """What may be typed, in a few words."""
    wanted = {"boolean": "y or n", "integer": "a whole number", "number": "a number"}.get(field.kind, "")
    if field.options:
        wanted = "a number, or your own words" if field.takes_words else "a number"
    return f"{wanted}; " if wanted else ""


def _schema_fields(schema: Any) -> list[FormField]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    fields = []
    for name, wanted in properties.items():
        field = _schema_field(str(name), wanted, name in names) if isinstance(wanted, dict) else None
        if field is not None:
            fields.append(field)
        elif name in names:
            raise CannotFill(str(name))
    return fields


def _schema_field(name: str, wanted: dict[str, Any], is_required: bool) -> FormField | None:
    kind = wanted.get("type", "string")
    if kind not in _KINDS:
        return None
    words = [str(wanted[key]) for key in ("title", "description") if wanted.get(key)]
    listed = wanted.get("enum")
    values = tuple(listed) if isinstance(listed, list) else ()
    names = wanted.get("enumNames")
    shown = names if isinstance(names, list) and len(names) == len(values) else values
    titled = [each for each in wanted.get("oneOf") or [] if isinstance(each, dict) and "const" in each]
    if titled:
        values = tuple(each["const"] for each in titled)
        shown = [each.get("title", each["const"]) for each in titled]
    return FormField(
        field_id=name,
        text=": ".join(words) or name,
        kind=kind,
        options=tuple(map(str, shown)),
        values=values,
        takes_words=not values,
        is_required=is_required,
    )
