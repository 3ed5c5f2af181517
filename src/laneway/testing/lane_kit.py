"""What every lane must do, as tests: a test class derives from `LaneKit` and says how its lane is made.

For lanes of anybody: `stage` gives the lane and, for each kind of turn that it can have, the words that
bring it about. What a lane has no words for is skipped with the reason. Needs no pytest itself.
"""

from __future__ import annotations

import asyncio
import os
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import LanewayError
from laneway.core.model import DECLINE, Answer, Asked, Question, Text, TurnDone
from laneway.lanes.adapter import PluginLane
from laneway.lanes.contract import Lane, LaneTurn
from laneway.lanes.names import ENGINE_LANES, normal
from laneway.testing.lane_host import HeardLane
from laneway.wire.guardian import descendants

DEADLINE_S = 90.0
"""For one test with real processes on a busy machine."""
LEAVE_S = 10.0
"""For the last process of a closed lane to be gone."""
LOOK_S = 0.01
"""Between two looks at what other processes do."""


def fill(question: Question, word: str = "blue") -> Answer:
    """A yes, and the word in each field."""
    yes = next(choice for choice in question.choices if choice.grants in ("once", "session"))
    return Answer(choice_id=yes.choice_id, values={field.field_id: word for field in question.fields})


class LaneStage(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of lane, and the words that make its turns go one way or another."""

    make: Callable[[], Lane]
    """A lane that is not open; each call makes another one of the same kind."""
    cwd: Path
    quick: str = "hello"
    """A turn that ends well by itself."""
    long: str | None = None
    """A turn that shows some words, and then runs until it is stopped."""
    asks: str | None = None
    """A turn that asks one question, and shows by its words what the answer was."""
    fails: str | None = None
    """A turn that fails."""
    dies: str | None = None
    """A turn in which the lane's process dies, or the lane raises."""
    heard: Callable[[], str] | None = None
    """What the lane's model was given in the latest turn, as one text."""
    answer: Callable[[Question], Answer] = fill
    """The answer to the question of `asks`."""
    answered: str = "blue"
    """What the turn shows after that answer."""
    owns_processes: bool = True
    """Whether a lane's processes end with it; else they belong to the stage."""


def plugin_stage(
    cls: type[Any],
    cwd: Path,
    *,
    quick: str = "hello",
    long: str | None = None,
    asks: str | None = None,
    answer: str = "blue",
    answered: str | None = None,
    fails: str | None = None,
) -> LaneStage:
    """The stage of a registered plugin class. `answered` is what it shows after the answer, if not that."""
    return LaneStage(
        make=lambda: PluginLane(cls),
        cwd=cwd,
        quick=quick,
        long=long,
        asks=asks,
        answer=lambda question: fill(question, answer),
        answered=answered or answer,
        fails=fails,
        dies=fails,
    )


class LaneKit:
    """Derive a test class from it, and define `stage`."""

    leave_s = LEAVE_S

    def stage(self) -> AbstractAsyncContextManager[LaneStage]:
        """How lanes of this kind are made; everything is gone at the end."""
        raise NotImplementedError

    # ── what it says of itself ─────────────────────────────────────────────

    async def test_it_has_a_name_a_usage_and_a_description(self) -> None:
        """As lists and `/help` show them."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            lane = here.make()
            assert lane.name in ENGINE_LANES or lane.name == normal(lane.name)
            assert f"/{lane.name}" in lane.usage
            for line in (lane.usage, lane.description):
                assert line.strip()
                assert "\n" not in line
            assert all("/" not in command.name for command in lane.abilities.commands)
            await lane.close()

    async def test_a_probe_says_in_one_sentence_what_is_wrong(self) -> None:
        """Before it is open, and as often as anybody asks."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            lane = here.make()
            problem = await lane.probe()
            assert problem is None or (problem.endswith(".") and "\n" not in problem)
            assert await lane.probe() == problem
            await lane.close()

    # ── turns ──────────────────────────────────────────────────────────────

    async def test_a_turn_starts_is_accepted_and_ends_once(self) -> None:
        """One start that names its ticket, one end, and it is the last."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            assert (await heard.play(here.quick)).status == "completed"

    async def test_turns_follow_each_other(self) -> None:
        """Each with an id of its own."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            first = await heard.play(here.quick)
            second = await heard.play(here.quick)
            assert (first.status, second.status) == ("completed", "completed")
            assert first.turn_id != second.turn_id

    async def test_context_reaches_the_model_in_front_of_the_text(self) -> None:
        """In the turn that it is given with, and as a text of its own."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            if here.heard is None:
                raise unittest.SkipTest("the stage cannot tell what the model was given")
            await heard.play(here.quick, context="codex has painted the shed")
            given = here.heard()
            assert "codex has painted the shed" in given
            assert given.index("codex has painted the shed") < given.rindex(here.quick)

    async def test_a_turn_that_fails_says_why_and_the_next_one_works(self) -> None:
        """A failure is a result, not an exception."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            done = await heard.play(_words(here.fails, "fails"))
            assert done.status == "failed"
            assert (await heard.play(here.quick)).status == "completed"

    async def test_a_lane_that_died_in_a_turn_works_in_the_next(self) -> None:
        """The turn is told to have failed."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            done = await heard.play(_words(here.dies, "dies"))
            assert done.status == "failed"
            assert (await heard.play(here.quick)).status == "completed"

    # ── interrupts ─────────────────────────────────────────────────────────

    async def test_an_interrupt_ends_the_turn_and_the_next_one_works(self) -> None:
        """Said twice, it is no more than said once."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            ticket = heard.begin(_words(here.long, "runs until it is stopped"))
            await heard.wait(Text)
            await heard.lane.interrupt()
            await heard.lane.interrupt()
            assert (await heard.ended(ticket)).status == "interrupted"
            assert (await heard.play(here.quick)).status == "completed"

    async def test_an_interrupt_at_once_ends_the_turn(self) -> None:
        """Before the lane has shown anything."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            ticket = heard.begin(_words(here.long, "runs until it is stopped"))
            await heard.lane.interrupt()
            assert (await heard.ended(ticket)).status == "interrupted"

    async def test_an_interrupt_without_a_turn_is_nothing(self) -> None:
        """Nor does it touch the next turn."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            await heard.lane.interrupt()
            assert (await heard.play(here.quick)).status == "completed"
            await heard.lane.interrupt()
            assert (await heard.play(here.quick)).status == "completed"

    async def test_words_are_steered_in_or_refused(self) -> None:
        """A lane that says it steers takes them; another says no; without a turn, both do."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            words = LaneTurn(ticket="steered", text=here.quick)
            assert not await heard.lane.steer(words)
            ticket = heard.begin(_words(here.long, "runs until it is stopped"))
            await heard.wait(Text)
            assert await heard.lane.steer(words) == heard.lane.abilities.steers
            await heard.lane.interrupt()
            await heard.ended(ticket)

    # ── questions ──────────────────────────────────────────────────────────

    async def test_an_answer_reaches_the_lane(self) -> None:
        """And an answer to another question does not."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            ticket = heard.begin(_words(here.asks, "asks"))
            question = (await heard.wait(Asked)).question
            before = len(heard.words)
            heard.lane.answer("nobody asked this", DECLINE)
            heard.lane.answer(question.question_id, here.answer(question))
            heard.lane.answer(question.question_id, DECLINE)
            assert (await heard.ended(ticket)).status == "completed"
            assert here.answered in heard.words[before:]
            assert question.message.strip()
            heard.lane.answer(question.question_id, DECLINE)

    async def test_a_question_without_an_answer_does_not_keep_the_turn(self) -> None:
        """It is declined."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            ticket = heard.begin(_words(here.asks, "asks"))
            question = (await heard.wait(Asked)).question
            heard.lane.answer(question.question_id, DECLINE)
            await heard.ended(ticket)

    async def test_an_interrupt_withdraws_the_question(self) -> None:
        """Nobody answers a turn that is over."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            ticket = heard.begin(_words(here.asks, "asks"))
            await heard.wait(Asked)
            await heard.lane.interrupt()
            assert (await heard.ended(ticket)).status == "interrupted"

    # ── ends ───────────────────────────────────────────────────────────────

    async def test_a_lane_that_is_closed_in_a_turn_ends_it_first(self) -> None:
        """And says nothing afterwards."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here, self._open(here) as heard:
            ticket = heard.begin(_words(here.long, "runs until it is stopped"))
            await heard.wait(Text)
            await heard.lane.close()
            assert heard.only(TurnDone), "close returned before the turn had ended"
            done = await heard.ended(ticket)
            assert done.status != "completed"
            count = len(heard.events)
            await heard.lane.close()
            assert len(heard.events) == count

    async def test_a_lane_that_was_never_used_can_be_closed(self) -> None:
        """Before it is open, before its first turn, and twice."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            lane = here.make()
            await lane.close()
            await lane.close()
            async with self._open(here) as heard:
                assert heard.only(TurnDone) == []

    async def test_a_conversation_is_resumed_or_refused(self) -> None:
        """By a lane that says it resumes, in another lane than the one that had it."""
        async with asyncio.timeout(DEADLINE_S), self.stage() as here:
            async with self._open(here) as heard:
                await heard.play(here.quick)
                thread_id = heard.lane.thread_id
                resumes = heard.lane.abilities.resumes
            assert (thread_id is not None) == resumes
            lane = here.make()
            heard = HeardLane(lane)
            try:
                if thread_id is None:
                    with _refused():
                        await lane.open(here.cwd, heard, resume="anything")
                else:
                    await lane.open(here.cwd, heard, resume=thread_id)
                    assert (await heard.play(here.quick)).status == "completed"
                    assert lane.thread_id == thread_id
            finally:
                await lane.close()

    def _open(self, here: LaneStage) -> AbstractAsyncContextManager[HeardLane]:
        return _Opened(here, self.leave_s)


class _Opened:
    """An open lane, which leaves no process behind."""

    def __init__(self, here: LaneStage, leave_s: float) -> None:
        self._here = here
        self._leave_s = leave_s
        self._heard = HeardLane(here.make())
        self._before: set[int] = set()

    async def __aenter__(self) -> HeardLane:
        self._before = set(descendants(os.getpid()))
        await self._heard.lane.open(self._here.cwd, self._heard)
        return self._heard

    async def __aexit__(self, *_: object) -> None:
        await self._heard.lane.close()
        until = time.monotonic() + self._leave_s
        while self._here.owns_processes and (left := set(descendants(os.getpid())) - self._before):
            assert time.monotonic() < until, f"a closed lane has left processes behind: {left}"
            await asyncio.sleep(LOOK_S)


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except LanewayError:
        return
    raise AssertionError("a lane that cannot resume has taken a conversation to resume")


def _words(words: str | None, what: str) -> str:
    if words is None:
        raise unittest.SkipTest(f"the stage has no words for a turn that {what}")
    return words
