"""The form of a question as an MCP elicitation asks for it, and what a filled-in form says. Pure.

Several choices at once are a list where the client's version has lists (from 2025-11-25 on), else a
text with commas. A no that may carry words has a field for them, because `decline` carries no content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laneway.base.plain import label, plain
from laneway.core.model import Answer, Field, Question
from laneway.rendering import forms

WORDS = "no_because"
"""The field for words with a no. Filled in, the answer is no, whatever else it says."""
OWN_WORDS = "{}_other"
"""The field for own words beside a list of options."""

MAX_SCHEMA_DEPTH = 32
"""Of a form's schema: real ones have four levels, and deeper ones cannot be filled in."""
_VALUES = frozenset({"enum", "const", "default", "pattern", "required", "format", "type"})
"""Keys of a schema whose values programs compare; all other texts in it are for people."""


def form(question: Question, *, takes_lists: bool = True) -> dict[str, Any]:
    """The JSON schema of the answer; without properties it is a plain yes or no."""
    if question.kind == "elicitation" and isinstance(question.schema, dict):
        visible = _visible(question.schema)
        return visible if isinstance(visible, dict) else {}
    properties: dict[str, Any] = {}
    required = []
    for field in question.fields:
        if field.is_multiple and field.options and takes_lists:
            properties |= _list_properties(field)
        else:
            properties[field.field_id] = _text_property(field)
        if not (field.is_multiple and field.allows_other and takes_lists):
            required.append(field.field_id)
    if question.words_choice is not None and not question.fields:
        properties[WORDS] = {
            "type": "string",
            "title": "No, and why, or what instead",
            "description": "Leave it empty to allow. With words in it the answer is no, and"
            f" {question.engine} is told them.",
        }
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def answer_with_words(question: Question, content: Any) -> Answer | None:
    """The no in a form's content, if words came with it; else none."""
    choice = question.words_choice
    words = content.get(WORDS) if isinstance(content, dict) else None
    if choice is None or not isinstance(words, str) or not words.strip():
        return None
    return Answer(choice_id=choice.choice_id, words=words.strip())


def filled(question: Question, content: dict[str, Any]) -> dict[str, Any]:
    """The content of a form with the value of each field that takes several choices as a list."""
    values = {key: value for key, value in content.items() if key != WORDS}
    for field in question.fields:
        if not field.is_multiple:
            continue
        other = values.pop(OWN_WORDS.format(field.field_id), None)
        chosen = values.pop(field.field_id, None)
        if isinstance(chosen, str):
            chosen = forms.split_choices([option.label for option in field.options], chosen)
        texts = [each for each in chosen if isinstance(each, str)] if isinstance(chosen, list) else []
        texts += [other.strip()] if isinstance(other, str) and other.strip() else []
        if texts:
            values[field.field_id] = texts
    return values


def _text_property(field: Field) -> dict[str, Any]:
    """A text, or one of the options."""
    field_schema: dict[str, Any] = {"type": "string", "title": label(field.header or field.field_id)}
    values = [option.label for option in field.options]
    lines = [field.text] if field.text else []
    if values and field.is_multiple:
        more = ", or something else" if field.allows_other else ""
        lines = [f"{field.text} (one or more of: {_names(values)}{more}; with commas between)".strip()]
    elif values and field.allows_other:
        lines = [f"{field.text} ({_names(values)}, or something else)".strip()]
    elif values:
        field_schema |= enum(values)
    lines += _described(field)
    return {**field_schema, "description": plain("\n".join(lines))} if lines else field_schema


def _list_properties(field: Field) -> dict[str, Any]:
    """A list of the options, and where own words are allowed a text beside it."""
    title, values = label(field.header or field.field_id), [option.label for option in field.options]
    lines = [*([field.text] if field.text else []), *_described(field)]
    listed: dict[str, Any] = {"type": "array", "title": title, "items": {"type": "string", **enum(values)}}
    if lines:
        listed["description"] = plain("\n".join(lines))
    if not field.allows_other:
        return {field.field_id: {**listed, "minItems": 1}}
    other = {"type": "string", "title": label(f"{title}: something else")}
    return {field.field_id: listed, OWN_WORDS.format(field.field_id): other}


def _described(field: Field) -> list[str]:
    return [f"- {option.label}: {option.description}" for option in field.options if option.description]


def _names(values: Sequence[str]) -> str:
    return ", ".join(label(value) for value in values)


def enum(values: Sequence[str]) -> dict[str, Any]:
    """An `enum` of the values, with `enumNames` where a value has characters that cannot be seen."""
    names = [label(value) for value in values]
    enum_names = {} if names == list(values) else {"enumNames": names}
    return {"enum": list(values), **enum_names}


def _visible(part: Any, depth: int = 0) -> Any:
    """A foreign schema with its texts made visible; its values stay as they came."""
    if isinstance(part, str):
        return plain(part)
    if isinstance(part, list):
        return [_visible(each, depth + 1) for each in part] if depth < MAX_SCHEMA_DEPTH else []
    if not isinstance(part, dict):
        return part
    if depth >= MAX_SCHEMA_DEPTH:
        return {}
    visible = {key: value if key in _VALUES else _visible(value, depth + 1) for key, value in part.items()}
    values = part.get("enum")
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        visible |= {} if isinstance(part.get("enumNames"), list) else enum(values)
    const = part.get("const")
    if isinstance(const, str) and "title" not in part and label(const) != const:
        visible["title"] = label(const)
    return visible
