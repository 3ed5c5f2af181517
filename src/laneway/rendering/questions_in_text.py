"""A question as text in the conversation, and the next prompt read as its answer.

Pure. The last rung, for clients that show neither forms nor options. A person answers in their own
words: `skip` gives no answer, an option can be named by its letter or its text, several questions
by their numbers. What cannot be read is asked again, and says why.
"""

from __future__ import annotations

import re
import string
from typing import Any

import msgspec

from laneway.base.plain import plain
from laneway.core.model import DECLINE, Answer, Question
from laneway.rendering import forms
from laneway.rendering.choices import granting
from laneway.rendering.forms import Control, Option
from laneway.rendering.question_words import asks

SKIP = "skip"
"""What a person says who gives no answer."""
_SKIPS = frozenset({SKIP, f"/{SKIP}", f"`{SKIP}`"})
_NUMBERED = re.compile(r"\s*(\d{1,3})\s*[:.)]\s*(.*)")
_YES = frozenset({"yes", "y", "true", "on"})
_HINTS = {"number": "a number", "integer": "a whole number", "boolean": "yes or no", "array": "one or more"}
_NO = frozenset({"no", "n", "false", "off"})


class InText(msgspec.Struct, frozen=True):
    """A question that the next prompt answers. `text` is to be said; the question stays open."""

    question: Question
    text: str
    fields: tuple[Control, ...]
    """What is still to be answered, in the order of the text's numbers."""
    values: dict[str, Any] = {}
    """What is answered already."""


def ask(
    question: Question, fields: tuple[Control, ...], values: dict[str, Any] | None = None, why: str = ""
) -> InText:
    """Word the fields. `why` tells what was wrong with the last answer."""
    parts = [why, _heading(question), *_listed(fields), _how(fields)]
    text = plain("\n\n".join(part for part in parts if part))
    return InText(question=question, text=text, fields=fields, values=values or {})


def from_text(asked: InText, text: str) -> Answer | InText:
    """What a person's words mean: an answer, or the question again where they cannot be read."""
    words = text.strip()
    if words.casefold() in _SKIPS:
        return DECLINE
    given = _by_field(asked.fields, words) if words else None
    if given is None:
        why = "Please start each answer with its number." if words else "There was no answer in that."
        return ask(asked.question, asked.fields, asked.values, why)
    values, missing, problems = dict(asked.values), [], []
    for field in asked.fields:
        said = given.get(field.name)
        value = _read(field, said) if said else None
        if value is not None:
            values[field.name] = value
        elif said or field.is_required:
            missing.append(field)
            problems.append(_problem(field, said or ""))
    if missing:
        return ask(asked.question, tuple(missing), values, " ".join(problems))
    return granting(asked.question, "once", values=values)


# ── wording ────────────────────────────────────────────────────────────────


def _heading(question: Question) -> str:
    if question.kind == "elicitation":
        return asks(question)
    return "Codex has a question." if len(question.fields) == 1 else "Codex has questions."


def _listed(fields: tuple[Control, ...]) -> list[str]:
    return [
        _worded(field, f"{number}. " if len(fields) > 1 else "") for number, field in enumerate(fields, 1)
    ]


def _worded(field: Control, number: str) -> str:
    lines = [f"{number}**{field.title}**{_hint(field)}"]
    lines += [field.text] if field.text else []
    for letter, option in zip(string.ascii_lowercase, field.options, strict=False):
        lines.append(f"   - {letter}) {option.title}{f': {option.text}' if option.text else ''}")
    lines += [f"   - {option.title}" for option in field.options[len(string.ascii_lowercase) :]]
    return "\n".join(lines)


def _hint(field: Control) -> str:
    hints = [_HINTS[field.kind]] if field.kind in _HINTS else []
    hints += [] if field.is_required else ["may be left out"]
    return f" ({', '.join(hints)})" if hints else ""


def _how(fields: tuple[Control, ...]) -> str:
    lines = ["Answer with your next message."]
    if len(fields) > 1:
        lines.append("Give each answer a line of its own that starts with its number, such as `1: …`.")
    if any(field.options for field in fields):
        lines.append("An option can be named by its letter.")
    if any(field.is_secret for field in fields):
        lines.append("A secret is asked for: what you type stays readable in this conversation.")
    return " ".join([*lines, f"Say `{SKIP}` to give no answer."])


def _problem(field: Control, said: str) -> str:
    if not said:
        return f"An answer for “{field.title}” is missing."
    return f"“{said}” is no answer for “{field.title}”."


# ── reading ────────────────────────────────────────────────────────────────


def _by_field(fields: tuple[Control, ...], words: str) -> dict[str, str] | None:
    """Which words are for which field; none if that cannot be told."""
    if len(fields) == 1:
        return {fields[0].name: words}
    numbered = _by_number(fields, words)
    if numbered:
        return numbered
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    if len(lines) == len(fields):
        return {field.name: line for field, line in zip(fields, lines, strict=True)}
    # Free words to free questions: the model gets all of them under each, and loses none.
    return {field.name: words for field in fields} if all(field.takes_words for field in fields) else None


def _by_number(fields: tuple[Control, ...], words: str) -> dict[str, str]:
    """Lines that start with a question's number; lines between belong to the number above."""
    given: dict[str, str] = {}
    current = ""
    for line in words.splitlines():
        match = _NUMBERED.fullmatch(line)
        if match and 1 <= int(match[1]) <= len(fields):
            current = fields[int(match[1]) - 1].name
            given[current] = match[2].strip()
        elif current:
            given[current] = f"{given[current]}\n{line}".strip()
        elif line.strip():
            return {}
    return given


def _read(field: Control, said: str) -> Any:
    """A person's words as a value of the field; none if they are none."""
    if field.kind == "array":
        chosen = [_option(field.options, part) for part in re.split(r"[,;\n]", said) if part.strip()]
        return [option.value for option in chosen if option] if chosen and all(chosen) else None
    if field.options:
        option = _option(field.options, said)
        if option:
            return option.value
        return said if field.takes_words else None
    if field.kind == "string":
        return said
    value = _scalar(field, said.strip().casefold())
    return value if value is not None and forms.fits(field, value) else None


def _scalar(field: Control, said: str) -> bool | int | float | None:
    if field.kind == "boolean":
        return True if said in _YES else False if said in _NO else None
    try:
        return int(said) if field.kind == "integer" else float(said)
    except ValueError:
        return None


def _option(options: tuple[Option, ...], said: str) -> Option | None:
    words = said.strip().strip("`\"'").casefold()
    for option in options:
        if words in (option.title.casefold(), option.value.casefold()):
            return option
    letter = words.rstrip(").")
    index = string.ascii_lowercase.find(letter) if len(letter) == 1 else -1
    return options[index] if 0 <= index < len(options) else None
