"""Open questions of one session at this terminal: asks them one by one, delivers each answer once.

Filters a session's events before they are drawn: while a question is on the screen, other events
are held back and drawn afterwards. A question that was settled elsewhere, or withdrawn, is removed
at once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from laneway.base.errors import LanewayError, QuestionGone
from laneway.core.background import TaskSet
from laneway.core.model import Answer, Asked, Event, Question, Withdrawn
from laneway.core.question_tasks import QuestionTasks
from laneway.core.subscription import Subscription
from laneway.terminal.prompting.asking import Prompter

log = logging.getLogger(__name__)

Deliver: TypeAlias = Callable[[Question, Answer | None], Awaitable[None]]
"""Delivers an answer; `None` if there was none. Raises `QuestionGone` if it came too late."""


class Canvas(Protocol):
    """Draws the other events of a session."""

    def show(self, event: Event) -> None: ...

    def pause(self) -> None:
        """Stop drawing while a question is on the screen."""
        ...

    def resume(self) -> None: ...

    def say(self, text: str) -> None:
        """Print a remark of ours on a line of its own."""
        ...


class TerminalQuestions:
    """Pass it every event, and close it with `aclose`. Without a `prompter` questions get no answer."""

    def __init__(self, canvas: Canvas, prompter: Prompter | None, deliver: Deliver) -> None:
        self._canvas = canvas
        self._prompter = prompter
        self._deliver = deliver
        self._asking = QuestionTasks()
        self._tasks = TaskSet()
        self._open: set[str] = set()
        """Ids of questions without an answer."""
        self._held = Subscription()
        """Events that came while a question was on the screen: bounded, and texts are merged."""

    def on_event(self, event: Event) -> None:
        match event:
            case Asked(question=question):
                self._begin(question)
            case Withdrawn() if event.question_id in self._open:
                self._open.discard(event.question_id)
                self._asking.withdraw(event.question_id, "declined" if event.is_declined else "settled")
                self._draw(event)
            case _:
                self._draw(event)

    def _draw(self, event: Event) -> None:
        if self._asking:
            self._held.push(event)
        else:
            self._canvas.show(event)

    def _begin(self, question: Question) -> None:
        if not self._asking:
            self._canvas.pause()
        task = self._tasks.spawn(self._ask(question), "question")
        self._asking.add(question.question_id, task)
        self._open.add(question.question_id)
        task.add_done_callback(lambda _: self._end(question.question_id))

    async def _ask(self, question: Question) -> None:
        answer = None if self._prompter is None else await self._prompter.ask(question)
        self._open.discard(question.question_id)
        try:
            await self._deliver(question, answer)
        except QuestionGone:
            self._canvas.say("Too late: the question was settled meanwhile.")
        except LanewayError as problem:
            log.info("an answer could not be delivered: %s", problem)

    def _end(self, question_id: str) -> None:
        self._open.discard(question_id)
        if self._asking:
            return  # the next one is on the screen
        self._canvas.resume()
        for event in self._held.take():
            self._canvas.show(event)

    async def aclose(self) -> None:
        """Withdraw the open questions, and draw the events that were held back."""
        await self._asking.aclose()
