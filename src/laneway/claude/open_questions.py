"""The open questions of one thread: asks the owner, remembers whom to answer, withdraws what is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laneway.base.errors import QuestionGone
from laneway.base.ids import new_id
from laneway.claude import questions
from laneway.core.model import DECLINE, Answer, Asked, Event, Question, Withdrawn

_YES = ("once", "session", "always")
Respond = Callable[[str, dict[str, Any]], None]
"""Sends the response to a request of Claude Code's, by the request's id."""


class ThreadQuestions:
    def __init__(self, emit: Callable[[Event], None], cwd: str) -> None:
        self._emit = emit
        self._cwd = cwd
        self._open: dict[str, tuple[str, Question]] = {}
        """By question id: the id of the request, and the question."""
        self.declined: set[str] = set()
        """The calls that were not allowed in this turn."""

    def __bool__(self) -> bool:
        return bool(self._open)

    def ask(self, request_id: str, request: dict[str, Any], thread_id: str, turn_id: str | None) -> bool:
        """Ask the owner; false if the request asks for no decision."""
        question = questions.question_of(request, new_id("q"), thread_id, turn_id, self._cwd)
        if question is None:
            return False
        self._open[question.question_id] = request_id, question
        self._emit(Asked(question=question))
        return True

    def answer(self, question_id: str, answer: Answer, respond: Respond) -> None:
        """Raises `QuestionGone` if it was answered or withdrawn."""
        if question_id not in self._open:
            raise QuestionGone(question_id)
        request_id, question = self._open.pop(question_id)
        granted = any(c.choice_id == answer.choice_id and c.grants in _YES for c in question.choices)
        if not granted and question.item_id is not None:
            self.declined.add(question.item_id)
        respond(request_id, questions.reply(question, answer))

    def cancel(self, request_id: str) -> None:
        """Claude Code does not wait for this answer any more."""
        for question_id, (each, _) in list(self._open.items()):
            if each == request_id:
                self._withdraw(question_id)

    def decline_all(self, respond: Respond) -> None:
        """Nobody will answer: whoever asked in the background must not wait for ever."""
        for question_id, (request_id, question) in list(self._open.items()):
            respond(request_id, questions.reply(question, DECLINE))
            self._withdraw(question_id)

    def withdraw_all(self) -> None:
        for question_id in list(self._open):
            self._withdraw(question_id)

    def _withdraw(self, question_id: str) -> None:
        if self._open.pop(question_id, None) is not None:
            self._emit(Withdrawn(question_id=question_id))
