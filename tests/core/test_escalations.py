"""A session that declines escalations: at once, by itself, and nobody who hears of them can grant them."""

from __future__ import annotations

import msgspec
import pytest

from laneway.base.errors import QuestionGone
from laneway.core.model import DECLINE, Answer, Asked, Event, Withdrawn
from laneway.core.session import Session
from laneway.core.subscription import Subscription
from laneway.testing.engine import HandThread
from tests.core.support import ME, SPEC, Stage, stage, until, words

YES = Answer(choice_id="accept")


async def narrow(here: Stage) -> tuple[Session, HandThread]:
    session = await here.hub.start(ME, msgspec.structs.replace(SPEC, declines_escalations=True))
    return session, here.engine.threads[session.thread_id]


async def heard(watching: Subscription, count: int) -> list[Event]:
    """The next events about questions."""
    found: list[Event] = []
    async for event in watching:
        if isinstance(event, Asked | Withdrawn):
            found.append(event)
        if len(found) == count:
            break
    return found


async def test_an_escalation_is_declined_before_anybody_can_answer() -> None:
    """In the moment in which it is asked; whoever listens hears that it was, and that it is over."""
    async with stage() as here:
        session, thread = await narrow(here)
        watching = session.subscribe()
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.ask("q")
        assert thread.answers == {"q": DECLINE}
        assert session.questions == []
        with pytest.raises(QuestionGone):
            await session.answer("q", YES)
        asked, gone = await heard(watching, 2)
        thread.end()
        await turn.result()

    assert isinstance(asked, Asked)
    assert gone == Withdrawn(question_id="q", is_declined=True)


async def test_what_widens_nothing_is_asked_as_ever() -> None:
    """A question of the model to a person."""
    async with stage() as here:
        session, thread = await narrow(here)
        session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.ask("q", is_escalation=False)
        await until(lambda: session.questions)
        await session.answer("q", YES)
        assert thread.answers == {"q": YES}


async def test_it_stays_so_when_the_engine_had_to_be_started_again() -> None:
    """The thread that comes back is under the same rule, also in a turn that mail starts."""
    async with stage() as here:
        session, thread = await narrow(here)
        first = session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.accept(first.ticket)
        thread.end()
        await first.result()
        here.engine.die("signal SIGKILL")
        session.say(words("b"), kind="mail")
        await until(lambda: here.engine.threads[session.thread_id].turn_id)
        again = here.engine.threads[session.thread_id]
        again.ask("q")
        assert again.answers["q"] == DECLINE
