"""Tasks that ask a client the questions of one session: one for each, cancelled when the question is over.

A question is over when it was answered, when it expired, or when its engine withdrew it; whoever asked it
is told by `Withdrawn`, also after an answer of its own. So a task that has its answer calls `release`
first, or that event would cancel it while it delivers the answer.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from laneway.base.errors import LanewayError

log = logging.getLogger(__name__)


class QuestionTasks:
    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __contains__(self, question_id: str) -> bool:
        return question_id in self._tasks

    def add(self, question_id: str, task: asyncio.Task[Any]) -> None:
        """This task asks the question; it is forgotten at its end."""
        self._tasks[question_id] = task
        task.add_done_callback(lambda _: self._forget(question_id, task))

    def _forget(self, question_id: str, task: asyncio.Task[Any]) -> None:
        if self._tasks.get(question_id) is task:
            del self._tasks[question_id]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, LanewayError):
            # Nobody awaits the task. The question stays open until it expires, and is declined then.
            log.warning("question %s could not be asked: %s", question_id, error)

    def release(self, question_id: str) -> None:
        """The task goes on by itself: the end of the question does not cancel it."""
        self._tasks.pop(question_id, None)

    def withdraw(self, question_id: str, why: str | None = None) -> bool:
        """Cancel the task of a question that is over; false if none asks it, or none any more."""
        task = self._tasks.get(question_id)
        if task is None or task.cancelling():
            return False
        task.cancel(why)
        return True

    def withdraw_all(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def aclose(self) -> None:
        """Cancel all tasks, and wait until they have ended and are forgotten."""
        while self._tasks:
            self.withdraw_all()
            await asyncio.wait(tuple(self._tasks.values()))
            await asyncio.sleep(0)  # lets the tasks' callbacks run
