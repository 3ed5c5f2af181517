"""A question as the options of `session/request_permission`, and the client's reply as an answer.

Pure. A reply that does not select one of the options declines.
"""

from __future__ import annotations

from typing import Any

from laneway.core.answers import stop_answer
from laneway.core.model import DECLINE, Answer, Choice, Question
from laneway.rendering import choices

_KINDS = {
    "once": "allow_once",
    "session": "allow_always",
    "always": "allow_always",
    "nothing": "reject_once",
    "stop": "reject_once",
}


SAY_WHY = {"optionId": "say-why", "name": "Decline, and say why or what instead", "kind": "reject_once"}
"""Offered where the engine passes words with a no on; they are asked for next."""


def options(question: Question) -> list[dict[str, Any]]:
    """The `PermissionOption`s. `optionId` is the choice's id, but for `SAY_WHY`."""
    offered = [
        {"optionId": choice.choice_id, "name": choices.name(question, choice), "kind": _kind(choice)}
        for choice in choices.offered(question)
    ]
    return [*offered, SAY_WHY] if question.words_choice is not None else offered


def answer(question: Question, reply: Any) -> Answer:
    """The answer in a reply. Cancelled: stops the turn, if the question allows that; invalid: declines."""
    picked = chosen(reply, options(question))
    if picked is not None:
        return Answer(choice_id=picked["optionId"])
    return stop_answer(question) if _outcome(reply).get("outcome") == "cancelled" else DECLINE


def chosen(reply: Any, offered: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The option that the reply selects; none if it selects none of these."""
    outcome = _outcome(reply)
    if outcome.get("outcome") != "selected":
        return None
    return next((option for option in offered if option["optionId"] == outcome.get("optionId")), None)


def _outcome(reply: Any) -> dict[str, Any]:
    outcome = reply.get("outcome") if isinstance(reply, dict) else None
    return outcome if isinstance(outcome, dict) else {}


def _kind(choice: Choice) -> str:
    is_no = choice.grants == "nothing"
    return "reject_always" if is_no and choice.rule is not None else _KINDS[choice.grants]
