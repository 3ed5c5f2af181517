"""A session as its doors see it, on an engine in the test's hand."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from laneway.base.errors import EngineLost, EngineRefused, NoTurn, QuestionGone, SessionClosed, SessionStuck
from laneway.core.model import (
    DECLINE,
    Accepted,
    Answer,
    Asked,
    Closed,
    EngineBack,
    EngineGone,
    Notice,
    Text,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.ports import TextPart
from laneway.core.subscription import MAX_EVENTS
from laneway.core.turn import TurnResult
from laneway.testing.engine import HandThread
from tests.core.support import ME, stage, until, words

YES = Answer(choice_id="accept")


def is_running(thread: HandThread, turn_id: str) -> bool:
    return thread.turn_id == turn_id


async def test_a_turn_streams_its_events_and_ends_with_its_result() -> None:
    """Started, accepted, text, done: in this order, then the result."""
    async with stage() as here:
        session, thread = await here.session()
        turn = session.say(words("hello"))
        await until(lambda: thread.turn_id)
        thread.say("Hi ")
        thread.say("there")
        thread.end(text="Hi there")
        events = [event async for event in turn.events]
        turn_id = "thread-1/1"
        assert events == [
            TurnStarted(turn_id=turn_id, ticket=turn.ticket),
            Accepted(turn_id=turn_id, client_id=turn.ticket),
            Text(turn_id=turn_id, item_id="item", text="Hi there"),
            TurnDone(turn_id=turn_id, status="completed", text="Hi there"),
        ]
        assert await turn.result() == TurnResult("completed", "Hi there", turn_id=turn_id)
        assert (session.status, session.turns) == ("idle", 1)


@pytest.mark.covers("FR-8.9")
async def test_turns_run_one_after_another_in_the_order_they_came() -> None:
    """Single flight, first come first served, each with its own events."""
    async with stage() as here:
        session, thread = await here.session()
        turns = [session.say(words(text)) for text in "abc"]
        for number, text in enumerate("abc", 1):
            await until(partial(is_running, thread, f"thread-1/{number}"))
            assert session.status == "busy"
            thread.end(text=text.upper())
        assert [(await turn.result()).text for turn in turns] == ["A", "B", "C"]
        assert [spec.parts for _, spec in thread.started] == [(TextPart(text),) for text in "abc"]


async def test_a_cancelled_turn_is_interrupted_and_the_next_one_runs() -> None:
    """Cancel leaves the session healthy."""
    async with stage() as here:
        session, thread = await here.session()
        first, second = session.say(words("a")), session.say(words("b"))
        await until(lambda: thread.turn_id)
        first.cancel()
        result = await first.result()
        assert (result.status, result.stopped_by) == ("interrupted", "cancel")
        await until(lambda: thread.turn_id == "thread-1/2")
        thread.end(text="ok")
        assert (await second.result()).text == "ok"


async def test_an_interrupt_that_comes_too_early_is_said_again() -> None:
    """Codex refuses to stop a turn that it has announced and not yet begun, and would run it to its end."""
    async with stage() as here:
        session, thread = await here.session()
        thread.ignores_interrupt = True
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        turn.cancel()
        await until(lambda: thread.interrupted)

        def is_heard() -> bool:
            here.clock.advance(0.05)
            return len(thread.interrupted) == 2

        await until(is_heard)
        assert (await turn.result()).status == "interrupted"
        assert thread.interrupted == ["thread-1/1", "thread-1/1"]


async def test_the_first_answer_reaches_the_engine_and_the_second_is_refused() -> None:
    """Two doors may show one question; one of them decides."""
    async with stage() as here:
        session, thread = await here.session()
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.ask("q")
        await until(lambda: session.questions)
        await here.hub.answer(ME, "q", YES)
        with pytest.raises(QuestionGone):
            await session.answer("q", DECLINE)
        assert thread.answers == {"q": YES}
        thread.end()
        await turn.result()


async def test_an_answer_that_the_question_does_not_offer_decides_nothing() -> None:
    """Only what Codex will take is passed on."""
    async with stage() as here:
        session, thread = await here.session()
        session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.ask("q")
        await until(lambda: session.questions)
        with pytest.raises(QuestionGone):
            await session.answer("q", Answer(choice_id="acceptEverything"))
        assert [question.question_id for question in session.questions] == ["q"]


@pytest.mark.covers("FR-18.4")
async def test_a_question_without_an_answer_is_declined_after_its_time() -> None:
    """Approvals fail closed."""
    async with stage() as here:
        session, thread = await here.session()
        session.say(words("a"), timeout_s=1000)
        await until(lambda: thread.turn_id)
        thread.ask("q")
        await until(lambda: session.questions)
        here.clock.advance(300)
        await until(lambda: thread.answers)
        assert thread.answers == {"q": DECLINE}


async def test_an_engine_that_ignores_the_interrupt_cannot_wedge_the_session() -> None:
    """Everybody is answered, and the close still works."""
    async with stage(is_obedient=False) as here:
        session, thread = await here.session()
        stuck, behind = session.say(words("a"), timeout_s=5), session.say(words("b"))
        await until(lambda: thread.turn_id)
        here.clock.advance(5)
        await until(lambda: thread.interrupted)
        here.clock.advance(10)
        for turn in (stuck, behind, session.say(words("c"))):
            with pytest.raises(SessionStuck):
                await turn.result()
        thread.end("interrupted")
        late = session.say(words("d"))
        await until(partial(is_running, thread, "thread-1/2"))
        thread.end(text="usable again, once the turn has ended after all")
        assert (await late.result()).status == "completed"
        await session.close()
        assert session.status == "closed"


async def test_closing_answers_everybody_and_releases_the_thread() -> None:
    """Declined, interrupted, failed, released; and closing again is no error."""
    async with stage() as here:
        session, thread = await here.session()
        watching = session.subscribe()
        running, waiting = session.say(words("a")), session.say(words("b"))
        await until(lambda: thread.turn_id)
        thread.ask("q")
        await until(lambda: session.questions)
        await session.close()
        assert thread.answers == {"q": DECLINE}
        assert (await running.result()).stopped_by == "close"
        with pytest.raises(SessionClosed):
            await waiting.result()
        with pytest.raises(SessionClosed):
            await session.say(words("c")).result()
        assert (thread.is_released, session.status) == (True, "closed")
        assert await session.close() is None
        assert [event async for event in watching][-1] == Closed()
        await until(lambda: not here.hub.sessions(ME))


async def test_closing_picks_the_no_that_ends_the_turn_where_a_question_offers_one() -> None:
    """After a plain no the model would be called again, until the interrupt reaches the engine."""
    async with stage() as here:
        session, thread = await here.session()
        session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.is_obedient = False
        thread.ask("asked before", offers_stop=True)
        await until(lambda: session.questions)
        closing = asyncio.ensure_future(session.close())
        await until(lambda: thread.interrupted)
        thread.ask("asked meanwhile", offers_stop=True)
        await until(lambda: len(thread.answers) == 2)
        assert {answer.choice_id for answer in thread.answers.values()} == {"cancel"}
        thread.end("interrupted")
        await closing


async def test_a_turn_that_ends_well_before_it_can_be_interrupted_was_still_closed() -> None:
    """Its question was declined for it: Codex may finish on that before it hears of the interrupt."""
    async with stage() as here:
        session, thread = await here.session()
        thread.is_obedient = False
        running = session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.ask("q")
        await until(lambda: session.questions)
        closing = asyncio.ensure_future(session.close())
        await until(lambda: thread.interrupted)
        thread.end(text="I was not allowed to.")
        result = await running.result()
        assert (result.status, result.text, result.stopped_by) == (
            "completed",
            "I was not allowed to.",
            "close",
        )
        await closing


async def test_a_close_may_run_one_last_turn() -> None:
    """What a door needs for a summary: after the running turn, before the release."""
    async with stage() as here:
        session, thread = await here.session()
        session.say(words("work"))
        await until(lambda: thread.turn_id)

        thread.replies["summarise"] = "all done"
        result = await session.close(words("summarise"))
        assert result is not None
        assert result.text == "all done"
        assert thread.is_released


async def test_a_dead_engine_fails_the_turn_and_the_next_one_brings_it_back() -> None:
    """The turn fails honestly; the thread is resumed with the settings it had."""
    async with stage() as here:
        session, thread = await here.session()
        watching = session.subscribe()
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        here.engine.die()
        result = await turn.result()
        assert (result.status, result.failure and result.failure.kind) == ("failed", "engine_lost")
        again = session.say(words("b"))
        await until(lambda: here.engine.resumed and here.engine.threads["thread-1"].turn_id)
        here.engine.threads["thread-1"].end(text="back")
        assert (await again.result()).text == "back"
        assert here.engine.resumed == [("thread-1", session.spec)]
        kinds = [type(event) for event in watching.take()]
        assert kinds.index(EngineGone) < kinds.index(EngineBack)


async def test_where_reviving_is_forbidden_the_next_turn_hears_of_the_death() -> None:
    """No restart behind the back of a caller that must be told."""
    async with stage(revive=False) as here:
        session, _ = await here.session()
        here.engine.die("exit code 3")
        with pytest.raises(EngineLost, match="exit code 3"):
            await session.say(words("a")).result()
        assert here.engine.resumed == []


async def test_a_turn_that_the_engine_refuses_raises_why() -> None:
    """Refused is not failed: the turn never was."""
    async with stage() as here:
        session, thread = await here.session()
        thread.refuse_with = EngineRefused("turn/start", -32600, "no such model")
        with pytest.raises(EngineRefused, match="no such model"):
            await session.say(words("a")).result()
        assert session.status == "idle"


async def test_steering_reaches_the_running_turn_and_only_that() -> None:
    """Without one the caller is told."""
    async with stage() as here:
        session, thread = await here.session()
        with pytest.raises(NoTurn):
            await session.steer((TextPart("now"),))
        session.say(words("a"))
        await until(lambda: thread.turn_id)
        await session.steer((TextPart("now"),))
        assert thread.steered == [(TextPart("now"),)]


async def test_a_turn_of_somebody_else_is_seen_and_waited_for() -> None:
    """Its events reach the subscribers; our turn starts after it."""
    async with stage() as here:
        session, thread = await here.session()
        watching = session.subscribe()
        thread.turn_id = "foreign"
        thread.emit(TurnStarted(turn_id="foreign"))
        turn = session.say(words("mine"))
        await until(lambda: session.status == "busy" and not session._inbox)
        assert thread.started == []
        thread.end()
        await until(lambda: thread.turn_id)
        thread.end(text="mine too")
        assert (await turn.result()).text == "mine too"
        kinds = [type(event).__name__ for event in watching.take()]
        assert kinds == ["TurnStarted", "TurnDone", "TurnStarted", "Accepted", "TurnDone"]


@pytest.mark.covers("FR-8.10", "FR-17.6")
async def test_mail_waits_for_every_client() -> None:
    """Precedence: a client's turn goes before mail that came earlier."""
    async with stage() as here:
        session, thread = await here.session()
        session.say(words("first"))
        await until(lambda: thread.turn_id)
        session.say(words("mail"), kind="mail")
        session.say(words("client"))
        for turn_number in (2, 3):
            thread.end()
            await until(partial(is_running, thread, f"thread-1/{turn_number}"))
        assert [spec.parts[0] for _, spec in thread.started] == [
            TextPart("first"),
            TextPart("client"),
            TextPart("mail"),
        ]


async def test_the_context_is_composed_anew_for_every_turn() -> None:
    """What the model should know may change between two turns."""
    branches = iter(["main", "feature"])
    async with stage() as here:
        here.hub._compose = lambda session: f"{session.identity} on {next(branches)}"
        session, thread = await here.session("codex-1")
        for _ in range(2):
            turn = session.say(words("go"))
            await until(lambda: thread.turn_id)
            thread.end()
            await turn.result()
        assert [spec.context for _, spec in thread.started] == ["codex-1 on main", "codex-1 on feature"]


async def test_a_withdrawn_question_can_no_longer_be_answered() -> None:
    """Codex took it back."""
    async with stage() as here:
        session, thread = await here.session()
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.ask("q")
        await until(lambda: session.questions)
        thread.emit(Withdrawn(question_id="q"))
        with pytest.raises(QuestionGone):
            await session.answer("q", YES)
        thread.end()
        kinds = [type(event) for event in turn.events.take()]
        assert kinds[2:4] == [Asked, Withdrawn]


async def test_cancelling_all_stops_the_running_turn_and_forgets_the_waiting_ones() -> None:
    """What an editor's stop button means; mail stays for later."""
    async with stage() as here:
        session, thread = await here.session()
        turns = [session.say(words(text)) for text in "ab"]
        mail = session.say(words("mail"), kind="mail")
        await until(lambda: thread.turn_id)
        session.cancel_all()
        assert [(await turn.result()).stopped_by for turn in turns] == ["cancel", "cancel"]
        await until(partial(is_running, thread, "thread-1/2"))
        thread.end(text="read")
        assert (await mail.result()).text == "read"


async def test_a_reader_that_leaves_gets_nothing_more() -> None:
    """And what it had is still its own."""
    async with stage() as here:
        session, thread = await here.session()
        watching = session.subscribe()
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        session.unsubscribe(watching)
        thread.end()
        await turn.result()
        assert [type(event) async for event in watching] == [TurnStarted, Accepted]


@pytest.mark.covers("FR-19.4")
async def test_what_slow_readers_lose_is_counted_per_session() -> None:
    """Also after they have left, and for the reader of a single turn."""
    async with stage() as here:
        session, thread = await here.session()
        watching = session.subscribe()
        turn = session.say(words("a"))
        await until(lambda: thread.turn_id)
        for _ in range(MAX_EVENTS):
            thread.emit(Notice(level="info", message="x"))
        lost = watching.lost
        assert lost > 0
        session.unsubscribe(watching)
        thread.end()
        await turn.result()
        assert session.lost_events == lost + turn.events.lost
