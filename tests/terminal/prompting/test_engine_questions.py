"""Questions at a terminal that engines other than Codex ask, with an engine that the test drives."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable
from typing import Any

import pytest

from laneway.core.model import Answer, Event, Question
from laneway.terminal.prompting.asking import Prompter
from laneway.terminal.prompting.keyboard import Keyboard
from laneway.terminal.prompting.questions import TerminalQuestions
from tests.core.support import stage, until, words
from tests.doors.sample_questions import CHOICES, COMMAND_WITH_WORDS, NO, PLAN, TOOL, YES


class Typist(Keyboard):
    """A keyboard whose lines are known beforehand."""

    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__(-1, io.StringIO())
        self._lines = iter(lines)

    def discard_typed(self) -> None:
        pass

    async def read_line(self, prompt: str, *, is_hidden: bool = False) -> str | None:
        self.write(f"{prompt}\n")
        return next(self._lines, None)

    @property
    def text(self) -> str:
        assert isinstance(self.screen, io.StringIO)
        return self.screen.getvalue()


class Blank:
    """Draws nothing."""

    def show(self, event: Event) -> None:
        pass

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def say(self, text: str) -> None:
        pass


async def answered(fields: dict[str, Any], *lines: str) -> tuple[Answer, str]:
    """What the engine was answered after these lines were typed, and what the screen showed."""
    typist = Typist(lines)
    async with stage() as here:
        session, thread = await here.session()
        thread.engine_name = "Claude"

        async def deliver(question: Question, answer: Answer | None) -> None:
            assert answer is not None
            await session.answer(question.question_id, answer)

        questions = TerminalQuestions(Blank(), Prompter(typist, settle_s=0), deliver)
        events = session.subscribe()
        session.say(words("go"))
        await until(lambda: thread.turn_id)
        thread.ask("q", **fields)

        async def show() -> None:
            async for event in events:
                questions.on_event(event)

        showing = asyncio.ensure_future(show())
        await until(lambda: "q" in thread.answers)
        await questions.aclose()
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        thread.end()
        return thread.answers["q"], typist.text


async def test_a_tool_is_named_and_its_arguments_are_fenced() -> None:
    """With keys for once, for the session, and no."""
    answer, text = await answered(TOOL, "2")
    assert answer == Answer(choice_id="acceptForSession")
    assert text.startswith(
        "? Allow Claude to use WebFetch?\n"
        "  │ {\n"
        '  │   "url": "https://example.org/a",\n'
        '  │   "prompt": "Sum it up"\n'
        "  │ }\n"
        "  because │ to look it up\n"
        "  1  Allow once\n"
        "  2  Allow for this session\n"
        "  4  No\n"
        "  y, n or a number, w to say why not; Enter declines: "
    )


async def test_a_plan_is_shown_whole() -> None:
    """A yes carries it out."""
    answer, text = await answered(PLAN, "y")
    assert answer == Answer(choice_id="accept")
    assert text.startswith(
        "? Allow Claude to carry out its plan?\n  │ # The plan\n  │ \n  │ 1. Read it\n  │ 2. Mend it\n"
    )


@pytest.mark.parametrize("fields", [TOOL, PLAN, COMMAND_WITH_WORDS], ids=["tool", "plan", "command"])
async def test_a_no_may_carry_words(fields: dict[str, Any]) -> None:
    """Which are asked for in the engine's name; an empty line is a plain no."""
    answer, text = await answered(fields, "w", "use curl")
    assert answer == Answer(choice_id="decline", words="use curl")
    assert "why, or what should Claude do instead: " in text
    assert (await answered(fields, "w", ""))[0] == Answer(choice_id="decline")


async def test_where_the_engine_takes_no_words_their_key_means_nothing() -> None:
    """It is not shown, and asked again."""
    plain = {**TOOL, "choices": (YES, NO)}
    answer, text = await answered(plain, "w", "n")
    assert answer == Answer(choice_id="decline")
    assert "to say why not" not in text
    assert "“w” is none of these." in text


async def test_options_are_shown_with_what_they_mean_and_several_may_be_chosen() -> None:
    """By number or by name, with commas between, or in own words."""
    answer, text = await answered(CHOICES, "1", "1, roof", "huge", "2,1")
    assert answer == Answer(
        choice_id="accept", values={"colour": ["Red"], "parts": ["Door", "Roof"], "sizes": ["L", "S"]}
    )
    assert "? Claude asks you several things\n" in text
    assert "  1  Red\n     ┊ warm\n  2  Blue\n     ┊ cool\n" in text
    assert "numbers with commas between, or your own words; Enter declines: " in text
    assert "“huge” is no answer to this." in text
    answer, _ = await answered(CHOICES, "green", "Wall, inner", "s")
    assert answer.values == {"colour": ["green"], "parts": ["Wall, inner"], "sizes": ["S"]}
    answer, _ = await answered(CHOICES, "green", "the door, but not the gate", "1")
    assert answer.values["parts"] == ["the door, but not the gate"]
