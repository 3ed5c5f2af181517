"""The time that a turn may take: when it runs, when it stands still, and what its end leaves behind."""

from __future__ import annotations

import pytest

from laneway.core.model import Answer, Failure, Notice
from laneway.core.session import Timing
from tests.core.support import stage, until, words

YES = Answer(choice_id="accept")


@pytest.mark.covers("FR-14.2")
async def test_a_turn_over_time_is_stopped_with_what_there_is_and_the_session_lives_on() -> None:
    """The time limit cancels, tells so, and leaves the session usable."""
    async with stage() as here:
        session, thread = await here.session()
        turn = session.say(words("a"), timeout_s=5)
        await until(lambda: thread.turn_id)
        here.clock.advance(5)
        result = await turn.result()
        assert (result.status, result.stopped_by) == ("interrupted", "timeout")
        again = session.say(words("b"))
        await until(lambda: thread.turn_id)
        thread.end(text="fine")
        assert (await again.result()).text == "fine"


@pytest.mark.covers("FR-14.1")
async def test_the_time_limit_stands_still_while_a_question_is_open() -> None:
    """A person who thinks for ten minutes costs the turn nothing."""
    async with stage() as here:
        session, thread = await here.session()
        turn = session.say(words("a"), timeout_s=5)
        await until(lambda: thread.turn_id)
        here.clock.advance(3)
        thread.ask("q")
        await until(lambda: session.questions)
        here.clock.advance(200)
        await session.answer("q", YES)
        here.clock.advance(1)
        thread.end(text="in time")
        assert (await turn.result()).text == "in time"
        late = session.say(words("b"), timeout_s=5)
        await until(lambda: thread.turn_id)
        here.clock.advance(5)
        assert (await late.result()).stopped_by == "timeout"


@pytest.mark.covers("FR-14.1")
async def test_the_time_limit_does_not_run_while_a_turn_waits_for_another() -> None:
    """Each turn has its whole time for itself."""
    async with stage() as here:
        session, thread = await here.session()
        first = session.say(words("a"), timeout_s=50)
        second = session.say(words("b"), timeout_s=5)
        await until(lambda: thread.turn_id)
        here.clock.advance(40)
        thread.end(text="a")
        assert (await first.result()).text == "a"
        await until(lambda: thread.turn_id)
        here.clock.advance(4)
        thread.end(text="b")
        assert (await second.result()).text == "b"


RETRY = Notice(level="error", message="Reconnecting... (example.org: no route)", will_retry=True)


async def test_an_engine_that_tries_in_vain_is_stopped_after_its_time() -> None:
    """Counted from the first of the retries in a row; an answer of the model ends the row."""
    async with stage(timing=Timing(retry_s=60)) as here:
        session, thread = await here.session()
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.emit(RETRY)
        here.clock.advance(59)
        thread.say("here I am")
        here.clock.advance(59)
        thread.emit(RETRY)
        here.clock.advance(30)
        thread.emit(RETRY)
        here.clock.advance(29)
        assert session.status == "busy"
        here.clock.advance(1)
        result = await turn.result()
        assert (result.status, result.stopped_by) == ("failed", "unreachable")
        assert result.failure == Failure(
            kind="unreachable",
            message="Codex could not reach the model for 60 s and was stopped, as the setting retry_secs"
            " says. It said: Reconnecting... (example.org: no route)",
        )
        again = session.say(words("b"))
        await until(lambda: thread.turn_id)
        thread.end(text="fine")
        assert (await again.result()).text == "fine"


async def test_without_a_time_for_retries_the_engine_has_its_own_patience() -> None:
    """As editors have it, where a person can cancel."""
    async with stage(timing=Timing(retry_s=0)) as here:
        session, thread = await here.session()
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.emit(RETRY)
        here.clock.advance(24 * 3600)
        thread.end(text="at last")
        assert (await turn.result()).text == "at last"
