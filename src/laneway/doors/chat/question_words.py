"""Answers to a lane's question by buttons, forms and words, and the buttons themselves. Pure.

Words that match no choice of an approval are no answer: it is asked again. A yes grants what the chosen
choice says, and words never grant more than once or this session.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from laneway.base.plain import label
from laneway.core.answers import answer_granting, no_with_words
from laneway.core.model import Answer, Choice, Question
from laneway.doors.chat.outputs import Button
from laneway.rendering import choices as choice_words
from laneway.rendering import forms, questions_in_text

APPROVALS = frozenset({"command", "patch", "permissions", "tool", "plan", "elicitation"})
"""Kinds that only owners may answer."""
MAX_OPTIONS = 20
"""Of a question that become buttons; the others can be typed."""

_YES = frozenset({"yes", "y", "ok", "okay", "allow", "accept", "approve", "once"})
_SESSION = frozenset({"session", "always", "yes for this session", "allow for this session", "all"})
_NO = frozenset({"no", "n", "deny", "decline", "reject", "skip"})
_STOP = frozenset({"cancel", "no and stop", "stop", "abort"})
_NO_WITH_WORDS = re.compile(r"(?:no|n|deny|decline)\s*[,:;.–-]\s*(\S.*)", re.IGNORECASE | re.DOTALL)


class Understood(msgspec.Struct, frozen=True):
    answer: Answer
    text: str
    """What it says, for everybody to see: nothing of a secret."""


class AskAgain(msgspec.Struct, frozen=True):
    text: str
    """The question again, with the reason."""
    values: dict[str, Any] = {}
    """Of several fields, those that were answered."""


def is_for_owners(question: Question) -> bool:
    return question.kind in APPROVALS


def has_secret(question: Question) -> bool:
    return any(field.is_secret for field in fields_of(question) or ())


def fields_of(question: Question) -> tuple[forms.Control, ...] | None:
    """What is to be filled in; none where a choice is all."""
    if question.kind not in ("input", "elicitation"):
        return None
    return forms.controls(question) or None


# ── buttons ────────────────────────────────────────────────────────────────


def question_buttons(number: int, question: Question) -> tuple[Button, ...]:
    """The choices of an approval, or the options of a single field."""
    fields = fields_of(question)
    if fields is None:
        return tuple(
            Button(
                f"q:{number}:{index}",
                choice_words.name(question, choice),
                "no" if choice.grants in ("nothing", "stop") else "yes",
            )
            for index, choice in enumerate(choice_words.offered(question))
        )
    if len(fields) != 1 or fields[0].kind == "array" or fields[0].is_secret:
        return ()
    options = fields[0].options[:MAX_OPTIONS]
    return tuple(
        Button(f"q:{number}:{index}", label(option.title, 60)) for index, option in enumerate(options)
    )


def button_number(data: str) -> tuple[int, int | None] | None:
    """Number of the question and index of the choice; none for a button of something else."""
    match data.split(":"):
        case ["q", number] if number.isdecimal():
            return int(number), None
        case ["q", number, index] if number.isdecimal() and index.isdecimal():
            return int(number), int(index)
        case _:
            return None


def from_button(question: Question, index: int, words: str = "") -> Understood | None:
    """None for a button that the question does not have."""
    fields = fields_of(question)
    if fields is None:
        offered = choice_words.offered(question)
        if index >= len(offered):
            return None
        return _chosen(question, offered[index], words)
    options = fields[0].options if len(fields) == 1 else ()
    if index >= len(options):
        return None
    answer = answer_granting(question, "once", values={fields[0].name: options[index].value})
    return Understood(answer, label(options[index].title))


def from_form(question: Question, values: dict[str, object]) -> Understood | None:
    """None if what was filled in does not fit."""
    fields = fields_of(question)
    if fields is None:
        return None
    fill = forms.answers if question.kind == "input" else forms.values
    filled = fill(fields, values)
    if filled is None:
        return None
    return Understood(answer_granting(question, "once", values=filled), _filled_text(fields, filled))


# ── words ──────────────────────────────────────────────────────────────────


def from_words(question: Question, text: str, values: dict[str, Any]) -> Understood | AskAgain:
    """`values` has the fields that were answered before."""
    fields = fields_of(question)
    if fields is None:
        return _choice_from_words(question, text)
    missing = tuple(field for field in fields if field.name not in values)
    result = questions_in_text.from_text(questions_in_text.ask(question, missing, values), text)
    if not isinstance(result, Answer):
        return AskAgain(result.text, result.values)
    chosen = next((each for each in question.choices if each.choice_id == result.choice_id), None)
    if chosen is None or chosen.grants in ("nothing", "stop"):
        return Understood(result, "no answer")
    return Understood(result, _filled_text(fields, result.values))


def _choice_from_words(question: Question, text: str) -> Understood | AskAgain:
    offered = choice_words.offered(question)
    words = " ".join(text.split()).strip("`\"'.! ").casefold()
    for index, choice in enumerate(offered, 1):
        names = {choice_words.name(question, choice).casefold(), choice.label.casefold(), str(index)}
        if words in names:
            return _chosen(question, choice)
    for spoken, scope in ((_YES, "once"), (_SESSION, "session"), (_NO, "nothing"), (_STOP, "stop")):
        choice_found = next((each for each in offered if each.grants == scope), None)
        if words in spoken and choice_found is not None:
            return _chosen(question, choice_found)
    with_words = _NO_WITH_WORDS.fullmatch(text.strip())
    if with_words is not None:
        return Understood(no_with_words(question, with_words[1]), f"no: {label(with_words[1])}")
    listed = ", ".join(
        f"{index} ({choice_words.name(question, choice)})" for index, choice in enumerate(offered, 1)
    )
    return AskAgain(f"That is none of the choices. Answer with {listed}.")


def _chosen(question: Question, choice: Choice, words: str = "") -> Understood:
    name = choice_words.name(question, choice)
    if words.strip() and choice.takes_words:
        return Understood(Answer(choice_id=choice.choice_id, words=words.strip()), f"{name}: {label(words)}")
    return Understood(Answer(choice_id=choice.choice_id), name)


def _filled_text(fields: tuple[forms.Control, ...], values: dict[str, Any]) -> str:
    shown = []
    for field in fields:
        if field.name in values:
            value = values[field.name]
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            shown.append("(secret)" if field.is_secret else label(text))
    return "; ".join(shown)
