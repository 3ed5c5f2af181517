"""Answers that only use the choices a question offers. Pure."""

from __future__ import annotations

from typing import Any

from laneway.core.model import DECLINE, Answer, Question


def answer_granting(question: Question, *scopes: str, values: dict[str, Any] | None = None) -> Answer:
    """The answer with the first of these scopes that the question offers, none wider; else a decline."""
    for scope in scopes:
        for choice in question.choices:
            if choice.grants == scope:
                return Answer(choice_id=choice.choice_id, values=values or {})
    return DECLINE


def stop_answer(question: Question) -> Answer:
    """The answer that declines and ends the turn, where the question offers that; else a decline."""
    return answer_granting(question, "stop")


def no_with_words(question: Question, words: str) -> Answer:
    """A decline with what the person says to it, where the engine takes that; else without."""
    choice = question.words_choice
    return Answer(choice_id=choice.choice_id, words=words.strip()) if choice else DECLINE
