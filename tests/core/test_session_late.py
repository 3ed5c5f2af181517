"""An engine that answers late, or never: nobody waits for it who has gone, and nothing starts behind them."""

from __future__ import annotations

import asyncio

import pytest

from laneway.base.errors import EngineRefused, LanewayError, SessionClosed
from laneway.core.ports import Part, TextPart
from laneway.core.thread_handle import INTERRUPT_AGAIN_S, MAX_INTERRUPT_AGAIN_S
from laneway.testing.engine import HandThread
from tests.core.support import ME, SPEC, Stage, stage, until, words


class Deaf(HandThread):
    """Whatever is asked of it while a turn runs stays without an answer, for good."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.asked: list[str] = []

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None:
        self.asked.append("steer")
        await asyncio.Event().wait()

    async def interrupt(self, turn_id: str) -> None:
        self.asked.append("interrupt")
        self.end("interrupted")
        await asyncio.Event().wait()


class Refusing(HandThread):
    """Knows no turn that could be stopped."""

    async def interrupt(self, turn_id: str) -> None:
        self.interrupted.append(turn_id)
        raise EngineRefused("turn/interrupt", -32600, "no such turn")


def restarting(here: Stage) -> asyncio.Event:
    """The engine is gone, and the next one gets up only when this is set."""
    here.engine.die()
    here.engine.hold_starts = asyncio.Event()
    return here.engine.hold_starts


async def test_a_turn_that_is_cancelled_while_the_engine_gets_up_never_reaches_it() -> None:
    """What nobody wants any more is not begun only to be stopped: it may do something at once."""
    async with stage() as here:
        session, _ = await here.session()
        gets_up = restarting(here)
        turn = session.say(words("rm everything"))
        await until(lambda: here.engine.held)
        turn.cancel()
        await until(lambda: session.status == "busy" and not session._inbox)
        gets_up.set()
        result = await turn.result()
        assert (result.status, here.engine.threads[session.thread_id].started) == ("interrupted", [])
        again = session.say(words("go on"))
        await until(lambda: here.engine.threads[session.thread_id].turn_id)
        here.engine.threads[session.thread_id].end()
        assert (await again.result()).status == "completed"


async def test_a_session_that_is_closed_while_the_engine_gets_up_starts_nothing() -> None:
    """It takes longer than we wait for it; what comes then finds nobody."""
    async with stage() as here:
        session, _ = await here.session()
        gets_up = restarting(here)
        turn = session.say(words("work"))
        await until(lambda: here.engine.held)
        closing = asyncio.ensure_future(session.close())
        await until(lambda: session.is_closing and not session._inbox)
        here.clock.advance(10.1)
        await closing
        with pytest.raises(LanewayError):
            await turn.result()
        gets_up.set()
        await here.hub.wait_gone(session.agent_id)
        assert [thread.started for thread in here.engine.threads.values()] == [[]]


@pytest.mark.parametrize("asks", ["steer", "interrupt"])
async def test_a_closed_session_is_gone_though_the_engine_owes_it_an_answer(asks: str) -> None:
    """Its place, its name and its thread are free at once; whoever waits is told."""
    async with stage() as here:
        here.engine.kind = Deaf
        session, thread = await here.session("ann")
        assert isinstance(thread, Deaf)
        session.say(words("work"))
        await until(lambda: thread.turn_id)
        steering = asyncio.ensure_future(session.steer((TextPart("faster"),))) if asks == "steer" else None
        await until(lambda: thread.asked or steering is None)
        await session.close()
        async with asyncio.timeout(5):
            await here.hub.wait_gone(session.agent_id)
            if steering is not None:
                with pytest.raises(SessionClosed):
                    await steering
            with pytest.raises(SessionClosed):
                await session.say(words("more")).result()
            again = await here.hub.resume(ME, session.thread_id, SPEC, identity="ann")
        assert again.status == "idle"


async def test_a_session_that_is_opened_while_all_are_closed_is_refused() -> None:
    """Nothing begins behind the end."""
    async with stage() as here:
        here.engine.hold_starts = asyncio.Event()
        opening = asyncio.ensure_future(here.hub.start(ME, SPEC))
        await until(lambda: here.engine.held)
        await here.hub.shutdown()
        here.engine.hold_starts.set()
        with pytest.raises(SessionClosed):
            await opening
        with pytest.raises(SessionClosed):
            await here.hub.start(ME, SPEC)
        assert here.hub.sessions(ME) == []


async def test_an_interrupt_that_is_refused_is_said_again_less_and_less_often() -> None:
    """At first within milliseconds, because Codex has only announced the turn; then there is no hurry."""
    async with stage() as here:
        here.engine.kind = Refusing
        session, thread = await here.session()
        turn = session.say(words("work"))
        await until(lambda: thread.turn_id)
        turn.cancel()
        await until(lambda: thread.interrupted)
        pause_s = INTERRUPT_AGAIN_S
        while pause_s < MAX_INTERRUPT_AGAIN_S:
            said = len(thread.interrupted)
            here.clock.advance(pause_s * 0.9)
            for _ in range(20):  # as many turns of the loop as an interrupt and its refusal could take
                await asyncio.sleep(0)
            assert len(thread.interrupted) == said
            here.clock.advance(pause_s * 0.2)
            await until(lambda: len(thread.interrupted) > said)  # noqa: B023  waited for at once
            pause_s *= 2
        thread.end("interrupted")
        assert (await turn.result()).status == "interrupted"
