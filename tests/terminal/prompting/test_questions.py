"""Open questions at one terminal: one at a time, nothing drawn into them, withdrawn at once."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway.base.errors import QuestionGone
from laneway.core.model import Answer, Asked, Choice, Event, Question, Text, Withdrawn
from laneway.terminal.prompting.asking import Prompter
from laneway.terminal.prompting.keyboard import Keyboard
from laneway.terminal.prompting.questions import TerminalQuestions
from tests.core.support import until

CHOICES = (
    Choice(choice_id="accept", label="Allow once", grants="once"),
    Choice(choice_id="decline", label="Decline", grants="nothing"),
)
PROMPT = "Enter declines: "


class Table:
    """A terminal, whoever draws beside the questions, and the answers that were given."""

    def __init__(self, keyboard: Keyboard, keys: int, screen: io.StringIO) -> None:
        self.screen = screen
        self.drawn: list[Event] = []
        self.said: list[str] = []
        self.is_paused = False
        self.answers: list[tuple[str, str | None]] = []
        self.refuse = False
        self.questions = TerminalQuestions(self, Prompter(keyboard, settle_s=0.0), self._deliver)
        self._keys = keys

    def show(self, event: Event) -> None:
        assert not self.is_paused
        self.drawn.append(event)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def say(self, text: str) -> None:
        self.said.append(text)

    async def _deliver(self, question: Question, answer: Answer | None) -> None:
        if self.refuse:
            raise QuestionGone(question.question_id)
        self.answers.append((question.question_id, answer.choice_id if answer else None))

    def ask(self, question_id: str, command: str) -> None:
        self.questions.on_event(Asked(question=asked(question_id, command)))

    async def type(self, text: str, prompts: int = 1) -> None:
        """Once so many prompts have stood on the screen."""
        await until(lambda: self.screen.getvalue().count(PROMPT) == prompts)
        os.write(self._keys, text.encode())


def asked(question_id: str, command: str) -> Question:
    return Question(
        question_id=question_id,
        kind="command",
        thread_id="t",
        turn_id="t",
        item_id=None,
        message="Run this command?",
        command=command,
        choices=CHOICES,
    )


@asynccontextmanager
async def table() -> AsyncIterator[Table]:
    keys, theirs = os.openpty()
    os.set_blocking(theirs, False)
    screen = io.StringIO()
    here = Table(Keyboard(theirs, screen), keys, screen)
    try:
        async with asyncio.timeout(30):
            yield here
    finally:
        await here.questions.aclose()
        os.close(theirs)
        os.close(keys)


def word(text: str) -> Text:
    return Text(turn_id="t", item_id="m", text=text)


async def test_nothing_is_drawn_into_a_question_and_all_of_it_comes_afterwards() -> None:
    """Texts that waited together are one."""
    async with table() as here:
        here.questions.on_event(word("before"))
        here.ask("q1", "ls")
        here.questions.on_event(word("dur"))
        here.questions.on_event(word("ing"))
        assert here.drawn == [word("before")]
        await here.type("y\n")
        await until(lambda: here.answers == [("q1", "accept")])
        await until(lambda: here.drawn == [word("before"), word("during")])


async def test_two_questions_at_once_are_asked_one_after_the_other() -> None:
    """Each gets its own answer."""
    async with table() as here:
        here.ask("q1", "first")
        here.ask("q2", "second")
        await here.type("y\n")
        await here.type("n\n", prompts=2)
        await until(lambda: len(here.answers) == 2)
        assert here.answers == [("q1", "accept"), ("q2", "decline")]


async def test_a_question_that_is_settled_elsewhere_leaves_and_what_was_typed_for_it_with_it() -> None:
    """Half an answer to one is no beginning of an answer to the next."""
    async with table() as here:
        here.ask("q1", "first")
        await here.type("y")
        here.questions.on_event(Withdrawn(question_id="q1"))
        here.ask("q2", "second")
        await here.type("\n", prompts=2)
        await until(lambda: here.answers == [("q2", "decline")])
        assert "No answer is needed any more." in here.screen.getvalue()
        await until(lambda: here.drawn == [Withdrawn(question_id="q1")])


async def test_an_answer_that_comes_too_late_is_said_to_be_one() -> None:
    """Somebody else was first."""
    async with table() as here:
        here.refuse = True
        here.ask("q1", "first")
        await here.type("y\n")
        await until(lambda: here.said == ["Too late: the question was settled meanwhile."])


async def test_the_end_of_input_is_nobodys_answer() -> None:
    """What that means, whoever asked decides."""
    async with table() as here:
        here.ask("q1", "first")
        await here.type("\x04")
        await until(lambda: here.answers == [("q1", None)])


async def test_a_question_that_nobody_answers_in_time_is_said_to_be_declined() -> None:
    """By the rules, not by somebody else."""
    async with table() as here:
        here.ask("q1", "first")
        await here.type("y")
        here.questions.on_event(Withdrawn(question_id="q1", is_declined=True))
        await until(lambda: "Declined: no answer came in time." in here.screen.getvalue())
        assert here.answers == []
