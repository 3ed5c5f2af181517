"""The form fields of a question (`Control`), from Codex's questions or an MCP server's schema.

Pure. Converts fields into the schema of an ACP elicitation, and validates what the user filled in.
A schema keyword that ACP lacks is dropped, because the server checks the values itself; a field that
cannot be shown at all is left out, and if it is required there is no form. Titles and descriptions have
hidden characters shown (`laneway.base.plain`); names and values stay unchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.plain import label, plain
from laneway.core.model import Field, Question

Kind: TypeAlias = Literal["string", "number", "integer", "boolean", "array"]

OTHER = "None of the above"
"""The value for an answer that is not among the options. It is Codex's own; every model can read it."""

_MAX_UINT32 = 2**32 - 1
_MAX_INT64 = 2**63 - 1
_FORMATS = frozenset({"email", "uri", "date", "date-time"})
_KINDS: dict[str, Kind] = {
    "string": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "array": "array",
}


class Option(msgspec.Struct, frozen=True):
    value: str
    title: str
    text: str = ""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a form."""

    name: str
    title: str
    text: str = ""
    kind: Kind = "string"
    options: tuple[Option, ...] = ()
    is_required: bool = True
    is_secret: bool = False
    takes_free_text: bool = False
    """Whether the user may answer in free text instead of an option, or add a remark to one."""
    default: Any = None
    limits: dict[str, Any] = {}
    """Constraints of a value in ACP's terms: length, range, format."""


def controls(question: Question) -> tuple[Control, ...] | None:
    """The fields that a question asks for; none if a form cannot show them."""
    if question.kind == "input":
        return tuple(_from_field(field) for field in question.fields)
    return _from_schema(question.schema)


def schema(fields: tuple[Control, ...]) -> dict[str, Any]:
    """The `requestedSchema` of `elicitation/create`."""
    properties: dict[str, Any] = {}
    for field in fields:
        properties[field.name] = _property(field)
        if field.takes_free_text and field.options:
            properties[_note_name(field, fields)] = {"type": "string", "title": "Something else, or a remark"}
    requested: dict[str, Any] = {"type": "object", "properties": properties}
    required = [field.name for field in fields if field.is_required]
    return {**requested, "required": required} if required else requested


def values(fields: tuple[Control, ...], content: Any) -> dict[str, Any] | None:
    """The valid values of a filled-in form, for these fields only; none if one does not fit."""
    filled = content if isinstance(content, dict) else {}
    valid: dict[str, Any] = {}
    for field in fields:
        value = filled.get(field.name)
        if field.takes_free_text and field.options:
            value = _with_note(value, filled.get(_note_name(field, fields)))
            value = [value] if field.kind == "array" and isinstance(value, str) else value
        if value is None and field.is_required:
            return None
        if value is None or (_is_blank(value) and not field.is_required):
            # Forms return an untouched field as an empty text.
            continue
        if not fits(field, value):
            return None
        valid[field.name] = value
    return valid


def answers(fields: tuple[Control, ...], content: Any) -> dict[str, Any] | None:
    """As `values`, for Codex's own questions: a blank one does not make the others invalid."""
    optional = [msgspec.structs.replace(field, is_required=False) for field in fields]
    return values(tuple(optional), content) or None


def fits(field: Control, value: Any) -> bool:
    """Whether a value is of the field's type, and one of its options where it has some."""
    allowed = {option.value for option in field.options}
    match field.kind:
        case "string" if field.takes_free_text:
            texts = value if isinstance(value, list) else [value]
            return all(isinstance(text, str) for text in texts)
        case "string":
            return isinstance(value, str) and (not allowed or value in allowed)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _whole(value) is not None
        case "number":
            return _is_number(value)
        case "array":
            texts = value if isinstance(value, list) else [None]
            return all(isinstance(v, str) and (field.takes_free_text or v in allowed) for v in texts)


# ── from an engine's questions ─────────────────────────────────────────────


def _from_field(field: Field) -> Control:
    described = {option.label: option.description for option in reversed(field.options)}
    return Control(
        name=field.field_id,
        title=field.header or field.text or field.field_id,
        text=field.text if field.header else "",
        kind="array" if field.is_multiple and field.options else "string",
        options=tuple(
            Option(label, label, "" if described[label] == label else described[label])
            for label in dict.fromkeys(option.label for option in field.options)
        ),
        is_secret=field.is_secret,
        takes_free_text=field.allows_other or not field.options,
    )


def split_choices(labels: Sequence[str], typed: str) -> list[str]:
    """A line as several choices, with commas or semicolons between them; else as own words, unchanged."""
    by_name = {each.casefold(): each for each in labels}
    parts = [part.strip() for part in re.split(r"[,;\n]", typed) if part.strip()]
    if typed.strip().casefold() in by_name or not all(part.casefold() in by_name for part in parts):
        return [by_name.get(typed.strip().casefold(), typed.strip())] if typed.strip() else []
    return list(dict.fromkeys(by_name[part.casefold()] for part in parts))


def _note_name(field: Control, fields: tuple[Control, ...]) -> str:
    name = f"{field.name}_note"
    while any(other.name == name for other in fields):
        name += "_"
    return name


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _with_note(value: Any, note: Any) -> Any:
    """Options and the own words beside them as one answer: a list, where it is more than one text."""
    if not isinstance(note, str) or not note.strip():
        return value
    if isinstance(value, list):
        return [*(each for each in value if each != OTHER), note.strip()]
    if value is None or _is_blank(value) or value == OTHER:
        return note.strip()
    return [value, note.strip()] if isinstance(value, str) else value


# ── from a JSON schema ─────────────────────────────────────────────────────


def _from_schema(schema: Any) -> tuple[Control, ...] | None:
    if schema is None:
        return ()
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return None
    properties = schema.get("properties", {})
    names = schema.get("required") or []
    if not isinstance(properties, dict) or not isinstance(names, list):
        return None
    required = [name for name in names if isinstance(name, str)]
    fields = []
    for name, spec in properties.items():
        field = _from_property(name, spec, is_required=name in required) if isinstance(spec, dict) else None
        if field is not None:
            fields.append(field)
        elif name in required:
            return None
    return tuple(fields) if all(name in properties for name in required) else None


def _from_property(name: str, spec: dict[str, Any], *, is_required: bool) -> Control | None:
    kind = _KINDS.get(_type(spec))
    if kind is None:
        return None
    options = _options(spec.get("items") if kind == "array" else spec)
    if options is None or (kind == "array" and not options) or (options and kind not in ("string", "array")):
        return None
    field = Control(
        name=name,
        title=_text(spec.get("title")) or name,
        text=_text(spec.get("description")),
        kind=kind,
        options=options,
        is_required=is_required,
        limits=_limits(kind, spec),
    )
    default = spec.get("default")
    return msgspec.structs.replace(field, default=default) if _is_default(field, default) else field


def _type(spec: dict[str, Any]) -> str:
    """The single type of a property; some servers write "or null" for an optional one."""
    kinds = spec.get("type")
    if isinstance(kinds, list):
        non_null = [kind for kind in kinds if kind != "null"]
        kinds = non_null[0] if len(non_null) == 1 else None
    if kinds is None and "enum" in spec:
        return "string"
    return kinds if isinstance(kinds, str) else ""


def _options(spec: Any) -> tuple[Option, ...] | None:
    """The values to choose from: empty for free input, none if a value is not a string."""
    if not isinstance(spec, dict):
        return None
    for key in ("oneOf", "anyOf"):
        if key in spec:
            return _titled(spec[key])
    values = spec.get("enum")
    if values is None:
        return ()
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        return None
    names = spec.get("enumNames")
    titles = names if isinstance(names, list) and len(names) == len(values) else values
    return tuple(Option(value, _text(title) or value) for value, title in zip(values, titles, strict=True))


def _titled(specs: Any) -> tuple[Option, ...] | None:
    if not isinstance(specs, list) or not specs:
        return None
    options = []
    for spec in specs:
        if not isinstance(spec, dict) or not isinstance(spec.get("const"), str):
            return None
        value = spec["const"]
        options.append(Option(value, _text(spec.get("title")) or value, _text(spec.get("description"))))
    return tuple(options)


def _limits(kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    sizes = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}.get(kind, ())
    for key in sizes:
        size = _whole(spec.get(key))
        if size is not None and 0 <= size <= _MAX_UINT32:
            limits[key] = size
    for key in ("minimum", "maximum") if kind in ("integer", "number") else ():
        bound = spec.get(key)
        bound = _whole(bound) if kind == "integer" else bound
        if _is_number(bound):
            limits[key] = bound
    if kind == "string" and isinstance(spec.get("pattern"), str):
        limits["pattern"] = spec["pattern"]
    if kind == "string" and _text(spec.get("format")) in _FORMATS:
        limits["format"] = spec["format"]
    return limits


def _is_default(field: Control, value: Any) -> bool:
    return value is not None and fits(field, value)


# ── as a schema ────────────────────────────────────────────────────────────


def _property(field: Control) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": field.kind, "title": label(field.title)}
    if field.text:
        spec["description"] = plain(field.text)
    if field.default is not None:
        spec["default"] = _whole(field.default) if field.kind == "integer" else field.default
    if field.kind == "array":
        choices = _choices(field, "anyOf")
        items = {"type": "string", **choices} if "enum" in choices else choices
        return {**spec, "items": items, **field.limits}
    # ACP has no length and no pattern for a selection.
    return {**spec, **(_choices(field, "oneOf") if field.options else field.limits)}


def _choices(field: Control, titled_key: str) -> dict[str, Any]:
    """The options of a field: as a bare `enum` where that loses nothing, because more clients know it."""
    options = field.options
    if field.takes_free_text and all(option.value != OTHER for option in options):
        options = (*options, Option(OTHER, OTHER, "Say it in the next field."))
    if all(label(option.title) == option.value and not option.text for option in options):
        return {"enum": [option.value for option in options]}
    rows = []
    for option in options:
        row = {"const": option.value, "title": label(option.title)}
        rows.append({**row, "description": plain(option.text)} if option.text else row)
    return {titled_key: rows}


def _is_number(value: Any) -> bool:
    """Whether a value is a number that fits into a double, as which other programs read it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # false for nan and inf; exact for an int of any size


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    is_whole = isinstance(value, int) or value.is_integer()  # is_integer: false for nan and inf
    return int(value) if is_whole and abs(value) <= _MAX_INT64 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
