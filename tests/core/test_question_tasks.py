"""Tasks that ask questions: they end with their question, but not by what their own answer brings about."""

from __future__ import annotations

import asyncio

import pytest

from laneway.base.errors import EngineError
from laneway.core.question_tasks import QuestionTasks

DEADLINE_S = 20


async def test_a_question_that_is_over_is_asked_no_longer() -> None:
    """The first who says so cancels its task, once; the other questions stay."""
    tasks, group = QuestionTasks(), asyncio.Event()
    asking = {name: asyncio.ensure_future(group.wait()) for name in ("one", "other")}
    for name, task in asking.items():
        tasks.add(name, task)
    assert tasks.withdraw("one")
    assert not tasks.withdraw("one"), "it is being ended already"
    await asyncio.wait([asking["one"]], timeout=DEADLINE_S)
    assert asking["one"].cancelled()
    assert ("one" in tasks, "other" in tasks) == (False, True)
    await tasks.aclose()
    assert asking["other"].cancelled()
    assert not tasks


async def test_a_task_that_has_its_answer_is_not_cancelled_by_it() -> None:
    """Delivering the answer ends the question; the task must survive that."""
    tasks, delivered = QuestionTasks(), asyncio.Event()

    async def ask() -> None:
        tasks.release("q")
        assert not tasks.withdraw("q")
        await asyncio.sleep(0)
        delivered.set()

    tasks.add("q", asyncio.ensure_future(ask()))
    async with asyncio.timeout(DEADLINE_S):
        await delivered.wait()


async def test_the_end_of_an_earlier_task_does_not_forget_the_one_that_took_over() -> None:
    """A question whose client refused to ask is declined by a second task."""
    tasks, over = QuestionTasks(), asyncio.Event()
    first = asyncio.ensure_future(asyncio.sleep(0))
    tasks.add("q", first)
    tasks.add("q", asyncio.ensure_future(over.wait()))
    await first
    await asyncio.sleep(0)
    assert "q" in tasks
    await tasks.aclose()


async def test_a_question_that_could_not_be_asked_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody awaits its task, so nobody else would say it."""

    async def ask() -> None:
        raise EngineError("the engine went away")

    tasks = QuestionTasks()
    task = asyncio.ensure_future(ask())
    tasks.add("q", task)
    await asyncio.wait([task], timeout=DEADLINE_S)
    await asyncio.sleep(0)
    assert [record.getMessage() for record in caplog.records] == [
        "question q could not be asked: the engine went away"
    ]
