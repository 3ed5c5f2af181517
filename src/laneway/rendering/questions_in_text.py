"""Asks a question as a message in the conversation, and parses the next prompt as its answer.

Pure. The fallback for clients that show neither forms nor options. The user answers in free text:
`skip` gives no answer, an option is named by its letter or its text, several questions are answered
by their numbers. An answer that cannot be parsed is asked for again, with the reason.
"""

from __future__ import annotations

import re
import string
from typing import Any

import msgspec

from laneway.base.plain import plain
from laneway.core.answers import answer_granting, no_with_words
from laneway.core.model import DECLINE, Answer, Question
from laneway.rendering import forms
from laneway.rendering.forms import Control, Option
from laneway.rendering.question_texts import attributed

SKIP = "skip"
"""What a user types to give no answer."""
_SKIPS = frozenset({SKIP, f"/{SKIP}", f"`{SKIP}`"})
_NUMBERED = re.compile(r"\s*(\d{1,3})\s*[:.)]\s*(.*)")
_YES = frozenset({"yes", "y", "true", "on"})
_HINTS = {"number": "a number", "integer": "a whole number", "boolean": "yes or no", "array": "one or more"}
_NO = frozenset({"no", "n", "false", "off"})


class InText(msgspec.Struct, frozen=True):
    """A question that the next prompt answers. `text` is shown to the user; the question stays open."""

    question: Question
    text: str
    fields: tuple[Control, ...]
    """The fields that are still to be answered, in the order of their numbers in the text."""
    values: dict[str, Any] = {}
    """The fields that are answered already."""
    is_why: bool = False
    """Whether the answer is no already, and the prompt brings the words that go with it."""


def ask(
    question: Question, fields: tuple[Control, ...], values: dict[str, Any] | None = None, problem: str = ""
) -> InText:
    """Compose the message. `problem` says what was wrong with the last answer."""
    paragraphs = [problem, _heading(question), *_listed(fields), _instructions(fields)]
    text = plain("\n\n".join(paragraph for paragraph in paragraphs if paragraph))
    return InText(question=question, text=text, fields=fields, values=values or {})


def ask_why(question: Question) -> InText:
    """Compose the message that asks for the words with a no."""
    text = (
        f"Why not, or what should {question.engine} do instead? Answer with your next message."
        f" Say `{SKIP}` to give no reason."
    )
    return InText(question=question, text=text, fields=(), is_why=True)


def from_text(in_text: InText, text: str) -> Answer | InText:
    """Parse a prompt: an answer, or the question again where the prompt cannot be parsed."""
    text = text.strip()
    if in_text.is_why and text:
        return no_with_words(in_text.question, "" if text.casefold() in _SKIPS else text)
    if text.casefold() in _SKIPS:
        return DECLINE
    if in_text.is_why:
        return in_text
    typed_by_name = _by_field(in_text.fields, text) if text else None
    if typed_by_name is None:
        problem = "Please start each answer with its number." if text else "There was no answer in that."
        return ask(in_text.question, in_text.fields, in_text.values, problem)
    values, missing, problems = dict(in_text.values), [], []
    for field in in_text.fields:
        typed = typed_by_name.get(field.name)
        value = _parse(field, typed) if typed else None
        if value is not None:
            values[field.name] = value
        elif typed or field.is_required:
            missing.append(field)
            problems.append(_problem(field, typed or ""))
    if missing:
        return ask(in_text.question, tuple(missing), values, " ".join(problems))
    return answer_granting(in_text.question, "once", values=values)


# ── message ────────────────────────────────────────────────────────────────


def _heading(question: Question) -> str:
    if question.kind == "elicitation":
        return attributed(question)
    return f"{question.engine} has {'a question' if len(question.fields) == 1 else 'questions'}."


def _listed(fields: tuple[Control, ...]) -> list[str]:
    return [
        _field_text(field, f"{number}. " if len(fields) > 1 else "") for number, field in enumerate(fields, 1)
    ]


def _field_text(field: Control, number: str) -> str:
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


def _instructions(fields: tuple[Control, ...]) -> str:
    lines = ["Answer with your next message."]
    if len(fields) > 1:
        lines.append("Give each answer a line of its own that starts with its number, such as `1: …`.")
    if any(field.options for field in fields):
        lines.append("An option can be named by its letter.")
    if any(field.is_secret for field in fields):
        lines.append("A secret is asked for: what you type stays readable in this conversation.")
    return " ".join([*lines, f"Say `{SKIP}` to give no answer."])


def _problem(field: Control, typed: str) -> str:
    if not typed:
        return f"An answer for “{field.title}” is missing."
    return f"“{typed}” is no answer for “{field.title}”."


# ── parsing ────────────────────────────────────────────────────────────────


def _by_field(fields: tuple[Control, ...], text: str) -> dict[str, str] | None:
    """The text for each field by its name; none if it is unclear which text is for which field."""
    if len(fields) == 1:
        return {fields[0].name: text}
    numbered = _by_number(fields, text)
    if numbered:
        return numbered
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == len(fields):
        return {field.name: line for field, line in zip(fields, lines, strict=True)}
    # Free text for free questions: the model gets all of it under each, so nothing is lost.
    return {field.name: text for field in fields} if all(field.takes_free_text for field in fields) else None


def _by_number(fields: tuple[Control, ...], text: str) -> dict[str, str]:
    """Lines that start with a question's number; a line without one belongs to the number above."""
    typed_by_name: dict[str, str] = {}
    current = ""
    for line in text.splitlines():
        match = _NUMBERED.fullmatch(line)
        if match and 1 <= int(match[1]) <= len(fields):
            current = fields[int(match[1]) - 1].name
            typed_by_name[current] = match[2].strip()
        elif current:
            typed_by_name[current] = f"{typed_by_name[current]}\n{line}".strip()
        elif line.strip():
            return {}
    return typed_by_name


def _parse(field: Control, typed: str) -> Any:
    """What the user typed as a value of the field; none if it is not one."""
    if field.kind == "array":
        return _several(field, typed)
    if field.options:
        option = _option(field.options, typed)
        if option:
            return option.value
        return typed if field.takes_free_text else None
    if field.kind == "string":
        return typed
    value = _scalar(field, typed.strip().casefold())
    return value if value is not None and forms.fits(field, value) else None


def _several(field: Control, typed: str) -> list[str] | None:
    """Options with commas between; else own words, where those are allowed."""
    whole = _option(field.options, typed)
    parts = [typed] if whole else [part for part in re.split(r"[,;\n]", typed) if part.strip()]
    chosen = [_option(field.options, part) for part in parts]
    if chosen and all(chosen):
        return list(dict.fromkeys(option.value for option in chosen if option))
    return [typed] if field.takes_free_text else None


def _scalar(field: Control, typed: str) -> bool | int | float | None:
    if field.kind == "boolean":
        return True if typed in _YES else False if typed in _NO else None
    try:
        return int(typed) if field.kind == "integer" else float(typed)
    except ValueError:
        return None


def _option(options: tuple[Option, ...], typed: str) -> Option | None:
    text = typed.strip().strip("`\"'").casefold()
    for option in options:
        if text in (option.title.casefold(), option.value.casefold()):
            return option
    letter = text.rstrip(").")
    index = string.ascii_lowercase.find(letter) if len(letter) == 1 else -1
    return options[index] if 0 <= index < len(options) else None
