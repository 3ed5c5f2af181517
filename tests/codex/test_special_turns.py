"""Turns that do not begin with `turn/start`, on the real Codex: reviews and compactions."""

from __future__ import annotations

import pytest

from laneway.base.errors import EngineRefused
from laneway.core.model import Activity, Compacted, Text, TurnDone, TurnStarted
from laneway.core.offers import Compaction, ReviewInstructions, SpecialTurn
from laneway.core.ports import TurnSpec
from laneway.core.session import Session
from laneway.core.turn import Turn
from tests.codex.support import first, only, play, real


def send(session: Session, special_turn: SpecialTurn) -> Turn:
    return session.say(TurnSpec(parts=(), special_turn=special_turn))


async def test_a_compaction_is_a_turn_with_a_start_and_an_end() -> None:
    """Codex answers the call before it has a turn; the turn is the caller's all the same."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say Something to remember.")
        turn = send(session, Compaction())
        events = [event async for event in turn.events]
        assert isinstance(events[0], TurnStarted)
        assert isinstance(events[-1], TurnDone)
        assert [each.status for each in only(events, Activity)] == ["running", "completed"]
        assert only(events, Compacted)
        assert (await turn.result()).status == "completed"


async def test_turns_and_special_turns_wait_for_each_other() -> None:
    """A compaction during a turn would make Codex stop that turn: it comes after it."""
    async with real() as here:
        session = await here.session()
        talk = session.say(TurnSpec(parts=(), special_turn=None, native={"input": []}))
        compaction = send(session, Compaction())
        assert (await talk.result()).status == "completed"
        assert (await compaction.result()).status == "completed"


async def test_a_review_is_one_turn_though_codex_gives_it_two_ids() -> None:
    """What it says and how it ends are told under the id that it began with."""
    async with real() as here:
        session = await here.session()
        turn = send(session, ReviewInstructions("%say All is well."))
        events = [event async for event in turn.events]
        starts, ends = only(events, TurnStarted), only(events, TurnDone)
        assert len(starts) == len(ends) == 1
        assert starts[0].turn_id == ends[0].turn_id
        assert "All is well." in "".join(event.text for event in only(events, Text))
        assert (await turn.result()).status == "completed"


async def test_a_review_can_be_stopped() -> None:
    """Codex stops it only under its inner id."""
    async with real() as here:
        session = await here.session()
        turn = send(session, ReviewInstructions("%hang"))
        await first(turn, TurnStarted)
        turn.cancel()
        assert (await turn.result()).status == "interrupted"


async def test_a_special_turn_that_codex_refuses_fails_and_the_session_goes_on() -> None:
    """The refusal is the turn's outcome; the next turn runs."""
    async with real() as here:
        session = await here.session()
        turn = send(session, ReviewInstructions(""))
        with pytest.raises(EngineRefused, match="instructions must not be empty"):
            await turn.result()
        _, result = await play(session, "%say Still here.")
        assert result.text == "Still here."
