"""Buttons and dialogs of Discord, made of what a conversation shows, and read back. Pure.

A button carries its data in its id, so that it works after a restart, too. Dialogs have at most five
fields; a question with more is answered by words.
"""

from __future__ import annotations

from typing import Any

from laneway.base.plain import label, plain
from laneway.core.model import Question
from laneway.doors.chat.outputs import Button
from laneway.doors.chat.platforms.bots.posts import BotPost
from laneway.doors.chat.platforms.discord.api import Json
from laneway.rendering import forms

MAX_BUTTONS = 25
ROW = 5
MAX_LABEL_CHARS = 80
MAX_TITLE_CHARS = 45
MAX_DESCRIPTION_CHARS = 100
MAX_FIELDS = 5
MAX_OPTIONS = 25
MAX_INPUT_CHARS = 4000
DIALOG = "d|"
"""Begins the id of a button that opens a dialog; the data of its answer follows."""
WORDS = "words"
"""The field of a dialog that takes words alone."""
STYLES = {"plain": 2, "yes": 3, "no": 4}
_ACTION_ROW, _BUTTON, _MENU, _TEXT, _LABEL = 1, 2, 3, 4, 18
_SHORT, _LONG = 1, 2
_YES, _NO = "yes", "no"


def rows(post: BotPost) -> list[Json]:
    """The buttons below a message; those that open a dialog come last."""
    plain_ones = [_button(button, button.data) for button in post.buttons]
    opening = [_button(button, DIALOG + button.data) for button in post.dialogs]
    shown = [*plain_ones[: MAX_BUTTONS - len(opening)], *opening]
    return [
        {"type": _ACTION_ROW, "components": shown[start : start + ROW]} for start in range(0, len(shown), ROW)
    ]


def _button(button: Button, custom_id: str) -> Json:
    return {
        "type": _BUTTON,
        "style": STYLES[button.style],
        "label": label(button.label, MAX_LABEL_CHARS) or "…",
        "custom_id": custom_id,
    }


# ── dialogs ────────────────────────────────────────────────────────────────


def words_dialog(data: str, title: str) -> Json:
    """One field, for words that go with a choice."""
    field = {
        "type": _TEXT,
        "custom_id": WORDS,
        "style": _LONG,
        "required": True,
        "max_length": MAX_INPUT_CHARS,
    }
    part = {"type": _LABEL, "label": "Your words", "component": field}
    return {"custom_id": DIALOG + data, "title": label(title, MAX_TITLE_CHARS), "components": [part]}


def form_dialog(data: str, title: str, question: Question) -> Json | None:
    """A field for each that the question asks for; none if they do not fit into a dialog."""
    parts = []
    for field in forms.controls(question) or ():
        parts += _parts(field)
    if not 1 <= len(parts) <= MAX_FIELDS:
        return None
    return {"custom_id": DIALOG + data, "title": label(title, MAX_TITLE_CHARS), "components": parts}


def _parts(field: forms.Control) -> list[Json]:
    options = field.options[:MAX_OPTIONS]
    if field.kind == "boolean":
        options = (forms.Option(_YES, "Yes"), forms.Option(_NO, "No"))
    if not options:
        return [_text_part(field, field.name, field.title, is_required=field.is_required)]
    menu: Json = {
        "type": _MENU,
        "custom_id": f"{field.name[:90]}",
        "required": field.is_required and not field.takes_free_text,
        "min_values": 1 if field.is_required and not field.takes_free_text else 0,
        "max_values": len(options) if field.kind == "array" else 1,
        "options": [_option(option, index) for index, option in enumerate(options)],
    }
    part = {"type": _LABEL, "label": label(field.title, MAX_TITLE_CHARS), "component": menu}
    described = [_described(part, field.text)]
    if field.takes_free_text:
        described.append(
            _text_part(field, f"{field.name[:90]}|own", "Or in your own words", is_required=False)
        )
    return described


def _option(option: forms.Option, index: int) -> Json:
    # By its number: values may be longer than Discord takes.
    shown: Json = {"label": label(option.title, 100) or "…", "value": str(index)}
    if option.text:
        shown["description"] = label(option.text, MAX_DESCRIPTION_CHARS)
    return shown


def _text_part(field: forms.Control, name: str, title: str, *, is_required: bool) -> Json:
    is_line = field.kind != "string" or field.is_secret
    box: Json = {
        "type": _TEXT,
        "custom_id": name[:100],
        "style": _SHORT if is_line else _LONG,
        "required": is_required,
        "max_length": MAX_INPUT_CHARS,
    }
    if isinstance(field.default, str | int | float) and not isinstance(field.default, bool):
        box["value"] = str(field.default)[:MAX_INPUT_CHARS]
    part = {"type": _LABEL, "label": label(title, MAX_TITLE_CHARS), "component": box}
    return _described(part, field.text)


def _described(part: Json, text: str) -> Json:
    return {**part, "description": label(plain(text), MAX_DESCRIPTION_CHARS)} if text.strip() else part


# ── what was filled in ─────────────────────────────────────────────────────


def filled(components: Any) -> dict[str, Any]:
    """By the ids of fields: a text, or the list of what was chosen in a menu."""
    found: dict[str, Any] = {}
    for part in components if isinstance(components, list) else []:
        inner = part.get("component") or (part.get("components") or [None])[0]
        if isinstance(inner, dict) and isinstance(inner.get("custom_id"), str):
            found[inner["custom_id"]] = inner.get("values", inner.get("value", ""))
    return found


def form_values(question: Question, given: dict[str, Any]) -> dict[str, object]:
    """The values of the question's fields, from what `filled` found; blank ones are left out."""
    values: dict[str, object] = {}
    for field in forms.controls(question) or ():
        value = _value(field, given)
        if value is not None:
            values[field.name] = value
    return values


def _value(field: forms.Control, given: dict[str, Any]) -> object | None:
    name = field.name[:90]
    own = str(given.get(f"{name}|own") or "").strip()
    if field.kind == "boolean":
        chosen = given.get(name) or []
        return {"0": True, "1": False}.get(chosen[0]) if chosen else None
    if field.options:
        chosen = [
            field.options[int(index)].value
            for index in given.get(name) or []
            if str(index).isdecimal() and int(index) < len(field.options)
        ]
        if field.kind == "array":
            return [*chosen, *([own] if own else [])] or None
        if own:
            return [*chosen, own] if chosen else own
        return chosen[0] if chosen else None
    text = str(given.get(field.name[:100]) or "")
    if not text.strip():
        return None
    return _number(field, text)


def _number(field: forms.Control, text: str) -> object:
    """The text, or the number that it is where one is asked for."""
    if field.kind not in ("integer", "number"):
        return text
    try:
        return int(text) if field.kind == "integer" else float(text)
    except ValueError:
        return text  # told to be wrong by whoever checks it
