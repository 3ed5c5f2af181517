"""A plugin's question: when its `wants_user_input` is a new one, or an old one is over. Pure.

A plugin only has a flag: it can still be up for a moment after its question was answered, and it can be
down and up again between two looks. So after an answer, the flag counts as a new question once it was
seen down, once the plugin has said something since, or after `GRACE_S`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from laneway.core.model import Answer, Choice, Field, Question

LOOK_EVERY_S = 0.1
"""Between two looks at the flag, which nothing announces."""
GRACE_S = 1.0
FIELD = "answer"
"""The one field of the question."""

AskingEffect: TypeAlias = Literal["ask", "withdraw"] | None


class Asking(msgspec.Struct, frozen=True):
    is_open: bool = False
    """A question is shown, and has no answer yet."""
    answered_at: float | None = None
    """Set from the answer until the flag may be believed again."""


def look(state: Asking, *, wants: bool, now: float, has_spoken: bool = False) -> tuple[Asking, AskingEffect]:
    """What the flag means now. `has_spoken`: the plugin has just shown something."""
    if not wants:
        return Asking(), "withdraw" if state.is_open else None
    if state.is_open:
        return state, None
    if state.answered_at is not None and not has_spoken and now - state.answered_at < GRACE_S:
        return state, None
    return Asking(is_open=True), "ask"


def after_answer(state: Asking, now: float) -> Asking:
    return replace(state, is_open=False, answered_at=now)


def input_question(lane: str, turn_id: str, question_id: str, words: str) -> Question:
    """`words` are the plugin's last message: what it asks."""
    words = words or f"{lane} waits for your answer."
    return Question(
        question_id=question_id,
        kind="input",
        thread_id="",
        turn_id=turn_id,
        item_id=None,
        message=words,
        choices=(
            Choice(choice_id="accept", label="Answer", grants="once"),
            Choice(choice_id="decline", label="No answer", grants="nothing"),
        ),
        fields=(Field(field_id=FIELD, header=lane, text=words, allows_other=True),),
        is_escalation=False,
        engine=lane,
    )


def typed(answer: Answer) -> str:
    """What the user has answered; empty if nothing."""
    value = answer.values.get(FIELD, "") if answer.choice_id == "accept" else ""
    return (value if isinstance(value, str) else ", ".join(str(each) for each in value)) or answer.words
