"""A question of a session as the page shows it, and what was filled in there as an answer. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.plain import plain, plain_code
from laneway.core.model import Answer, Question
from laneway.rendering import forms
from laneway.rendering.choices import name, offered
from laneway.rendering.question_texts import conditions, question_title, reason, subject_data

GRANTING = ("once", "session", "always")


class AnswerRefused(ValueError):
    """The answer does not fit the question; nothing was sent."""


class FilledIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person has filled in and chosen."""

    question_id: str
    choice_id: str
    content: dict[str, Any] = {}
    """The values of the form by the names of its fields."""
    words: str = ""


def question_view(question: Question) -> dict[str, Any]:
    fields = forms.controls(question) if question.kind in ("input", "elicitation") else ()
    code = question.command if question.kind == "command" else question.plan
    data = subject_data(question)
    if data not in (None, {}):
        code = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    return {
        "question_id": question.question_id,
        "kind": question.kind,
        "engine": question.engine,
        "title": question_title(question),
        "message": plain(question.message),
        "code": plain_code(code or ""),
        "cwd": plain_code(question.cwd or ""),
        "notes": conditions(question) if question.kind in ("command", "patch") else reason(question),
        "url": plain_code(question.url or ""),
        "changes": [
            {"path": plain_code(each.path), "kind": each.kind, "diff": plain_code(each.diff)}
            for each in question.changes
        ],
        "can_fill": fields is not None,
        "fields": [_field(field) for field in fields or ()],
        "choices": [
            {
                "choice_id": choice.choice_id,
                "label": name(question, choice),
                "grants": choice.grants,
                "takes_words": choice.takes_words,
            }
            for choice in offered(question)
            if fields is not None or choice.grants not in GRANTING
        ],
    }


def _field(field: forms.Control) -> dict[str, Any]:
    return {
        "name": field.name,
        "title": plain(field.title),
        "text": plain(field.text),
        "kind": field.kind,
        "options": [
            {"value": each.value, "title": plain(each.title), "text": plain(each.text)}
            for each in field.options
        ],
        "is_required": field.is_required,
        "is_secret": field.is_secret,
        "takes_free_text": field.takes_free_text,
        "default": field.default,
    }


def answer_of(question: Question, filled: FilledIn) -> Answer:
    """`AnswerRefused` for a choice that was not offered, or a form that is not filled in as it must be."""
    choice = next((each for each in offered(question) if each.choice_id == filled.choice_id), None)
    if choice is None:
        raise AnswerRefused("This question has no such answer.")
    words = filled.words if choice.takes_words else ""
    if choice.grants not in GRANTING or question.kind not in ("input", "elicitation"):
        return Answer(choice_id=choice.choice_id, words=words)
    fields = forms.controls(question)
    if fields is None:
        raise AnswerRefused("The page cannot show this form: answer where the session was started.")
    read = forms.answers if question.kind == "input" else forms.values
    values = read(fields, filled.content)
    if values is None and fields:
        raise AnswerRefused("The form is not complete: a required field is missing, or a value does not fit.")
    return Answer(choice_id=choice.choice_id, values=values or {}, words=words)
