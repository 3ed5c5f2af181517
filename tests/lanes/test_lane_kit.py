"""The kit for lanes: passed by a plugin and by a lane of the richer contract, failed by broken ones."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from laneway.core.model import (
    Accepted,
    Answer,
    Asked,
    Choice,
    Event,
    Failure,
    Field,
    Question,
    Status,
    Text,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.lanes import register_full_lane
from laneway.lanes.contract import Lane, LaneAbilities, LaneHost, LaneTurn
from laneway.lanes.registry import get_full_lanes
from laneway.testing.lane_kit import LaneKit, LaneStage, plugin_stage
from tests.lanes.samples import Painter, registered

pytestmark = pytest.mark.usefixtures("fresh_registry")


class TestPlugin(LaneKit):
    """A plugin as the document has them."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.cwd = tmp_path

    @asynccontextmanager
    async def stage(self) -> AsyncIterator[LaneStage]:
        cls: Any = registered(Painter)
        stage = plugin_stage(cls, self.cwd, long="on", asks="ask", fails="fail")
        yield replace(stage, heard=lambda: cls.made[-1].inputs[-1].text)


class NotingLane:
    """A lane of the richer contract: it has a memory to resume, takes words in, and asks."""

    name = "note"
    usage = "Usage: /note <words>"
    description = "Keeps notes"
    abilities = LaneAbilities(steers=True, resumes=True)
    kept: ClassVar[dict[str, list[str]]] = {}

    def __init__(self) -> None:
        self.thread_id: str | None = None
        self.host: LaneHost | None = None
        self.turn: LaneTurn | None = None
        self.question_id = ""

    async def probe(self) -> str | None:
        return None

    async def open(self, cwd: Path, host: LaneHost, *, resume: str | None = None) -> None:
        self.host = host
        self.thread_id = resume

    def tell(self, event: Event) -> None:
        assert self.host is not None
        self.host.on_event(event)

    def begin(self, turn: LaneTurn) -> None:
        self.turn = turn
        self.thread_id = self.thread_id or f"thread-{len(self.kept)}"
        self.kept.setdefault(self.thread_id, []).append(f"{turn.context}|{turn.text}")
        self.tell(TurnStarted(turn_id=turn.ticket, ticket=turn.ticket))
        self.tell(Accepted(turn_id=turn.ticket, client_id=turn.ticket))
        self.say("noted")
        if turn.text == "ask":
            self.question_id = f"{turn.ticket}-question"
            self.tell(Asked(question=self.question()))
        elif turn.text == "fail":
            self.end("failed")
        elif turn.text != "on":
            self.end("completed")

    def question(self) -> Question:
        return Question(
            question_id=self.question_id,
            kind="input",
            thread_id=self.thread_id or "",
            turn_id=self.turn.ticket if self.turn else None,
            item_id=None,
            message="Which colour?",
            choices=(Choice(choice_id="accept", label="Answer", grants="once"),),
            fields=(Field(field_id="colour", header="Colour", text="Which colour?"),),
        )

    def say(self, text: str) -> None:
        assert self.turn is not None
        self.tell(Text(turn_id=self.turn.ticket, item_id="1", text=text))

    def end(self, status: Status) -> None:
        if self.turn is None:
            return
        if self.question_id:
            self.tell(Withdrawn(question_id=self.question_id))
        turn, self.turn, self.question_id = self.turn, None, ""
        failure = Failure(kind="other", message="the pen broke") if status == "failed" else None
        self.tell(TurnDone(turn_id=turn.ticket, status=status, failure=failure))

    async def steer(self, turn: LaneTurn) -> bool:
        return self.turn is not None

    async def interrupt(self) -> None:
        self.end("interrupted")

    def answer(self, question_id: str, answer: Answer) -> None:
        if question_id and question_id == self.question_id:
            self.say(str(answer.values.get("colour")))
            self.end("completed")

    async def close(self) -> None:
        self.end("interrupted")


def noting_stage(cls: type[NotingLane], cwd: Path) -> LaneStage:
    return LaneStage(
        make=cls,
        cwd=cwd,
        long="on",
        asks="ask",
        fails="fail",
        dies="fail",
        heard=lambda: [*cls.kept.values()][-1][-1],
    )


class TestFullLane(LaneKit):
    """A lane that needs no adapter."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.cwd = tmp_path

    @asynccontextmanager
    async def stage(self) -> AsyncIterator[LaneStage]:
        yield noting_stage(NotingLane, self.cwd)


@pytest.mark.covers("003-lane.14")
def test_a_lane_of_the_richer_contract_can_be_registered() -> None:
    """Each conversation makes its own."""
    register_full_lane(NotingLane)
    make = get_full_lanes()["note"]
    assert isinstance(make(), Lane)
    assert make() is not make()


# ── the kit sees what is broken ────────────────────────────────────────────


class NoEnd(NotingLane):
    """Its turns end without a word when they are closed."""

    async def close(self) -> None:
        self.turn = None


class TwoEnds(NotingLane):
    def end(self, status: Status) -> None:
        turn = self.turn
        super().end(status)
        if turn is not None:
            self.tell(TurnDone(turn_id=turn.ticket, status=status))


class WordsAfterTheEnd(NotingLane):
    def end(self, status: Status) -> None:
        turn = self.turn
        super().end(status)
        if turn is not None:
            self.tell(Text(turn_id=turn.ticket, item_id="2", text="late"))


class NotAccepted(NotingLane):
    def tell(self, event: Event) -> None:
        if not isinstance(event, Accepted):
            super().tell(event)


class AnotherTicket(NotingLane):
    def tell(self, event: Event) -> None:
        if isinstance(event, TurnStarted):
            event = TurnStarted(turn_id=event.turn_id, ticket="mine")
        super().tell(event)


class KeepsQuestions(NotingLane):
    def tell(self, event: Event) -> None:
        if not isinstance(event, Withdrawn):
            super().tell(event)


class FailsSilently(NotingLane):
    def tell(self, event: Event) -> None:
        if isinstance(event, TurnDone) and event.failure is not None:
            event = TurnDone(turn_id=event.turn_id, status="failed")
        super().tell(event)


class TakesAnyAnswer(NotingLane):
    def answer(self, question_id: str, answer: Answer) -> None:
        if self.question_id:
            super().answer(self.question_id, answer)


class CannotSteer(NotingLane):
    async def steer(self, turn: LaneTurn) -> bool:
        return False


class CannotResume(NotingLane):
    abilities = LaneAbilities(steers=True)


class ForgetsContext(NotingLane):
    def begin(self, turn: LaneTurn) -> None:
        super().begin(LaneTurn(ticket=turn.ticket, text=turn.text))


class ControlCommand(NotingLane):
    name = "stop"


class SameId(NotingLane):
    """All of its turns have one id."""

    def tell(self, event: Event) -> None:
        if isinstance(event, TurnStarted | Accepted | Text | TurnDone):
            fields = {name: getattr(event, name) for name in event.__struct_fields__}
            event = type(event)(**{**fields, "turn_id": "turn"})
        super().tell(event)


@pytest.mark.covers("003-lane.14")
@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (NoEnd, "a_lane_that_is_closed_in_a_turn_ends_it_first"),
        (TwoEnds, "a_turn_starts_is_accepted_and_ends_once"),
        (WordsAfterTheEnd, "a_turn_starts_is_accepted_and_ends_once"),
        (NotAccepted, "a_turn_starts_is_accepted_and_ends_once"),
        (AnotherTicket, "a_turn_starts_is_accepted_and_ends_once"),
        (SameId, "turns_follow_each_other"),
        (KeepsQuestions, "an_answer_reaches_the_lane"),
        (KeepsQuestions, "an_interrupt_withdraws_the_question"),
        (TakesAnyAnswer, "an_answer_reaches_the_lane"),
        (FailsSilently, "a_turn_that_fails_says_why_and_the_next_one_works"),
        (CannotSteer, "words_are_steered_in_or_refused"),
        (CannotResume, "a_conversation_is_resumed_or_refused"),
        (ForgetsContext, "context_reaches_the_model_in_front_of_the_text"),
    ],
)
async def test_the_kit_fails_a_broken_lane(broken: type[NotingLane], test: str, tmp_path: Path) -> None:
    """By the one test that is about it."""

    class Kit(LaneKit):
        @asynccontextmanager
        async def stage(self) -> AsyncIterator[LaneStage]:
            yield noting_stage(broken, tmp_path)

    kit: Any = Kit()
    with pytest.raises(AssertionError):
        await getattr(kit, f"test_{test}")()


async def test_a_name_that_no_lane_may_have_is_refused(tmp_path: Path) -> None:
    """Control commands come first."""

    class Kit(LaneKit):
        @asynccontextmanager
        async def stage(self) -> AsyncIterator[LaneStage]:
            yield noting_stage(ControlCommand, tmp_path)

    with pytest.raises(ValueError, match="command of the conversation itself"):
        await Kit().test_it_has_a_name_a_usage_and_a_description()


async def test_what_a_stage_has_no_words_for_is_skipped_with_the_reason(tmp_path: Path) -> None:
    """Not passed in silence."""

    class Kit(LaneKit):
        @asynccontextmanager
        async def stage(self) -> AsyncIterator[LaneStage]:
            yield plugin_stage(registered(Painter), tmp_path)

    with pytest.raises(unittest.SkipTest, match="no words for a turn that asks"):
        await Kit().test_an_answer_reaches_the_lane()


async def test_a_process_that_a_lane_leaves_behind_is_seen(tmp_path: Path) -> None:
    """After the time that it may take."""

    class Leaves(NotingLane):
        child: asyncio.subprocess.Process

        async def open(self, cwd: Path, host: LaneHost, *, resume: str | None = None) -> None:
            await super().open(cwd, host)
            type(self).child = await asyncio.create_subprocess_exec("sleep", "600")

    class Kit(LaneKit):
        @asynccontextmanager
        async def stage(self) -> AsyncIterator[LaneStage]:
            yield noting_stage(Leaves, tmp_path)

    Kit.leave_s = 0
    try:
        with pytest.raises(AssertionError, match="left processes behind"):
            await Kit().test_turns_follow_each_other()
    finally:
        Leaves.child.kill()
        await Leaves.child.wait()
