"""Runs turns of a session in tests: starts them, answers their questions, and reads what they told."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from laneway.core.model import Activity, Answer, Asked, Event, Question
from laneway.core.ports import TextPart, TurnSpec
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult

E = TypeVar("E", bound=Event)
X = TypeVar("X", bound=Exception)


def say(session: Session, *lines: str) -> Turn:
    return session.say(TurnSpec(parts=(TextPart("\n".join(lines)),)))


async def played(session: Session, turn: Turn, *, decide: str = "once") -> tuple[list[Event], TurnResult]:
    """The events of a turn and its result; each question is answered with this scope."""
    events: list[Event] = []
    async for event in turn.events:
        events.append(event)
        if isinstance(event, Asked):
            answer = granting(event.question, decide)
            await session.answer(event.question.question_id, answer)
    return events, await turn.result()


def granting(question: Question, scope: str) -> Answer:
    """The answer of this scope, which the question must offer."""
    for choice in question.choices:
        if choice.grants == scope:
            return Answer(choice_id=choice.choice_id)
    raise AssertionError(f"{question.kind} offers no {scope}: {question.choices}")


async def caught(kind: type[X], work: Awaitable[object]) -> X | None:
    """The error of this kind that the work ends with; none if it succeeds."""
    try:
        await work
    except kind as error:
        return error
    return None


async def first(turn: Turn, kind: type[E]) -> E:
    """Read on until an event of this kind comes."""
    async for event in turn.events:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"the turn ended without a {kind.__name__}: {await turn.result()}")


def only(events: list[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def by_item(events: list[Event], kind: str) -> list[list[Activity]]:
    """The activities of a kind, each with its states in order."""
    items: dict[str, list[Activity]] = {}
    for event in only(events, Activity):
        if event.kind == kind:
            items.setdefault(event.item_id, []).append(event)
    return list(items.values())
