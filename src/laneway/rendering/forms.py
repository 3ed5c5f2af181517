"""What a question wants to know, as form fields: from Codex's questions or an MCP server's schema.

Pure. Out: fields to show one by one, or the schema of an elicitation with nothing in it that ACP does not
know. In: what a person filled in, or none where it does not fit. A keyword that ACP lacks is dropped,
because the server checks what it gets; a field that cannot be shown at all is left out, or ends the form
if required. The words of a form are made visible (`laneway.base.plain`); its names and values stay as
they came.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.plain import label, plain
from laneway.core.model import Field, Question

Kind: TypeAlias = Literal["string", "number", "integer", "boolean", "array"]

OTHER = "None of the above"
"""Codex's own word for an answer that is not among the options; the model knows it."""
NOTE = "user_note: "
"""How Codex marks words that a person adds to an option."""

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
    takes_words: bool = False
    """Whether a person may answer beside the options, or add to one."""
    default: Any = None
    limits: dict[str, Any] = {}
    """What ACP can say of a value beyond its type: length, range, format."""


def controls(question: Question) -> tuple[Control, ...] | None:
    """The fields that a question asks for; none if it cannot be asked by a form."""
    if question.kind == "input":
        told = _told_options(question)
        return tuple(_from_field(field, told.get(field.field_id, {})) for field in question.fields)
    return _from_schema(question.schema)


def schema(fields: tuple[Control, ...]) -> dict[str, Any]:
    """The `requestedSchema` of `elicitation/create`."""
    shown: dict[str, Any] = {}
    for field in fields:
        shown[field.name] = _property(field)
        if field.takes_words and field.options:
            shown[_note_name(field, fields)] = {"type": "string", "title": "Something else, or a remark"}
    made: dict[str, Any] = {"type": "object", "properties": shown}
    required = [field.name for field in fields if field.is_required]
    return {**made, "required": required} if required else made


def values(fields: tuple[Control, ...], content: Any) -> dict[str, Any] | None:
    """What a person filled in, for those fields only; none if it does not fit them."""
    filled = content if isinstance(content, dict) else {}
    read: dict[str, Any] = {}
    for field in fields:
        value = filled.get(field.name)
        if field.takes_words and field.options:
            value = _with_note(value, filled.get(_note_name(field, fields)))
        if value is None and field.is_required:
            return None
        if value is None or (_is_blank(value) and not field.is_required):
            # Forms return what nobody touched as an empty text.
            continue
        if not fits(field, value):
            return None
        read[field.name] = value
    return read


def answers(fields: tuple[Control, ...], content: Any) -> dict[str, Any] | None:
    """As `values`, for Codex's own questions: one that was left blank does not void the others."""
    given = [msgspec.structs.replace(field, is_required=False) for field in fields]
    return values(tuple(given), content) or None


def fits(field: Control, value: Any) -> bool:
    """Whether a value is of the field's type, and one of its options where it has some."""
    chosen = {option.value for option in field.options}
    match field.kind:
        case "string" if field.takes_words:
            words = value if isinstance(value, list) else [value]
            return all(isinstance(word, str) for word in words)
        case "string":
            return isinstance(value, str) and (not chosen or value in chosen)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _whole(value) is not None
        case "number":
            return _is_number(value)
        case "array":
            return isinstance(value, list) and all(isinstance(v, str) and v in chosen for v in value)


# ── from Codex's questions ─────────────────────────────────────────────────


def _from_field(field: Field, texts: dict[str, str]) -> Control:
    return Control(
        name=field.field_id,
        title=field.header or field.text or field.field_id,
        text=field.text if field.header else "",
        options=tuple(Option(label, label, _beyond(label, texts)) for label in dict.fromkeys(field.options)),
        is_secret=field.is_secret,
        takes_words=field.allows_other or not field.options,
    )


def _beyond(label: str, texts: dict[str, str]) -> str:
    text = texts.get(label, "")
    return "" if text == label else text


def _told_options(question: Question) -> dict[str, dict[str, str]]:
    """What Codex says of each option, by question and label."""
    asked = question.params.get("questions") if isinstance(question.params, dict) else None
    told: dict[str, dict[str, str]] = {}
    for one in asked if isinstance(asked, list) else ():
        if not isinstance(one, dict):
            continue
        options = one.get("options")
        told[str(one.get("id"))] = {
            str(option.get("label")): str(option.get("description") or "")
            for option in (options if isinstance(options, list) else ())
            if isinstance(option, dict)
        }
    return told


def _note_name(field: Control, fields: tuple[Control, ...]) -> str:
    name = f"{field.name}_note"
    while any(other.name == name for other in fields):
        name += "_"
    return name


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _with_note(value: Any, note: Any) -> Any:
    """An option and the words beside it as one answer."""
    if not isinstance(note, str) or not note.strip():
        return value
    if value is None or _is_blank(value) or value == OTHER:
        return note.strip()
    return [value, NOTE + note.strip()] if isinstance(value, str) else value


# ── from MCP ───────────────────────────────────────────────────────────────


def _from_schema(told: Any) -> tuple[Control, ...] | None:
    if told is None:
        return ()
    if not isinstance(told, dict) or told.get("type", "object") != "object":
        return None
    properties = told.get("properties", {})
    listed = told.get("required") or []
    if not isinstance(properties, dict) or not isinstance(listed, list):
        return None
    required = [name for name in listed if isinstance(name, str)]
    fields = []
    for name, one in properties.items():
        field = _from_property(name, one, is_required=name in required) if isinstance(one, dict) else None
        if field is not None:
            fields.append(field)
        elif name in required:
            return None
    return tuple(fields) if all(name in properties for name in required) else None


def _from_property(name: str, told: dict[str, Any], *, is_required: bool) -> Control | None:
    kind = _KINDS.get(_type(told))
    if kind is None:
        return None
    options = _options(told.get("items") if kind == "array" else told)
    if options is None or (kind == "array" and not options) or (options and kind not in ("string", "array")):
        return None
    field = Control(
        name=name,
        title=_text(told.get("title")) or name,
        text=_text(told.get("description")),
        kind=kind,
        options=options,
        is_required=is_required,
        limits=_limits(kind, told),
    )
    default = told.get("default")
    return msgspec.structs.replace(field, default=default) if _is_default(field, default) else field


def _type(told: dict[str, Any]) -> str:
    """The one type of a property; "or null" is how some servers say optional."""
    kinds = told.get("type")
    if isinstance(kinds, list):
        real = [kind for kind in kinds if kind != "null"]
        kinds = real[0] if len(real) == 1 else None
    if kinds is None and "enum" in told:
        return "string"
    return kinds if isinstance(kinds, str) else ""


def _options(told: Any) -> tuple[Option, ...] | None:
    """The values to choose from: empty for free input, none if they are no texts."""
    if not isinstance(told, dict):
        return None
    for key in ("oneOf", "anyOf"):
        if key in told:
            return _titled(told[key])
    listed = told.get("enum")
    if listed is None:
        return ()
    if not isinstance(listed, list) or not listed or not all(isinstance(value, str) for value in listed):
        return None
    names = told.get("enumNames")
    titles = names if isinstance(names, list) and len(names) == len(listed) else listed
    return tuple(Option(value, _text(title) or value) for value, title in zip(listed, titles, strict=True))


def _titled(listed: Any) -> tuple[Option, ...] | None:
    if not isinstance(listed, list) or not listed:
        return None
    options = []
    for one in listed:
        if not isinstance(one, dict) or not isinstance(one.get("const"), str):
            return None
        value = one["const"]
        options.append(Option(value, _text(one.get("title")) or value, _text(one.get("description"))))
    return tuple(options)


def _limits(kind: Kind, told: dict[str, Any]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    sizes = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}.get(kind, ())
    for key in sizes:
        size = _whole(told.get(key))
        if size is not None and 0 <= size <= _MAX_UINT32:
            limits[key] = size
    for key in ("minimum", "maximum") if kind in ("integer", "number") else ():
        bound = told.get(key)
        bound = _whole(bound) if kind == "integer" else bound
        if _is_number(bound):
            limits[key] = bound
    if kind == "string" and isinstance(told.get("pattern"), str):
        limits["pattern"] = told["pattern"]
    if kind == "string" and _text(told.get("format")) in _FORMATS:
        limits["format"] = told["format"]
    return limits


def _is_default(field: Control, value: Any) -> bool:
    return value is not None and fits(field, value)


# ── as a schema ────────────────────────────────────────────────────────────


def _property(field: Control) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": field.kind, "title": label(field.title)}
    if field.text:
        shown["description"] = plain(field.text)
    if field.default is not None:
        shown["default"] = _whole(field.default) if field.kind == "integer" else field.default
    if field.kind == "array":
        listed = _listed(field, "anyOf")
        items = {"type": "string", **listed} if "enum" in listed else listed
        return {**shown, "items": items, **field.limits}
    # A select has no length and no pattern.
    return {**shown, **(_listed(field, "oneOf") if field.options else field.limits)}


def _listed(field: Control, titled: str) -> dict[str, Any]:
    """What can be chosen, by the plainest keyword that says it all: more clients know that one."""
    options = field.options
    if field.takes_words and all(option.value != OTHER for option in options):
        options = (*options, Option(OTHER, OTHER, "Say it in the next field."))
    if all(label(option.title) == option.value and not option.text for option in options):
        return {"enum": [option.value for option in options]}
    rows = []
    for option in options:
        row = {"const": option.value, "title": label(option.title)}
        rows.append({**row, "description": plain(option.text)} if option.text else row)
    return {titled: rows}


def _is_number(value: Any) -> bool:
    """One that fits into a double, which is what everybody else reads it into."""
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
