"""A session whose engine has died: what is tried again, what is not, and what the new one is told."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from laneway.base.errors import EngineLost, ThreadUnknown
from laneway.core.access import Permit
from laneway.core.model import EngineBack, ThreadKnown
from laneway.core.ports import TurnSpec
from laneway.core.turn import Turn
from laneway.testing.engine import HandThread
from tests.core.support import ME, SPEC, Stage, stage, until, words

SAID = msgspec.structs.replace(words("a"), native={"model": "m"}, permit_if_cold=Permit("untrusted"))


async def sent_to_the_dead(here: Stage, thread: HandThread) -> None:
    """The turn was asked for, and the engine died before it said a word about it."""
    thread.hold_starts = asyncio.Event()
    await until(lambda: thread.started)
    here.engine.die()
    thread.hold_starts.set()


async def finish(here: Stage, turn: Turn, thread_id: str = "thread-1") -> None:
    await until(lambda: here.engine.threads[thread_id].turn_id)
    here.engine.threads[thread_id].end(text="done")
    assert (await turn.result()).text == "done"


async def test_a_turn_that_a_dead_engine_never_heard_of_is_asked_for_again() -> None:
    """It died while nothing ran: whoever speaks next does not have to know."""
    async with stage() as here:
        session, thread = await here.session()
        turn = session.say(SAID)
        await sent_to_the_dead(here, thread)
        await until(lambda: here.engine.resumed)
        await finish(here, turn)
        assert session.turns == 1


async def test_a_turn_is_asked_for_again_only_once() -> None:
    """A turn that ends every engine must not end one after the other."""
    async with stage() as here:
        session, thread = await here.session()
        here.engine.hold_starts = asyncio.Event()
        turn = session.say(SAID)
        await sent_to_the_dead(here, thread)
        here.engine.refuse_with = EngineLost("killed by SIGSEGV")
        here.engine.hold_starts.set()
        with pytest.raises(EngineLost, match="SIGSEGV"):
            await turn.result()
        assert here.engine.resumed == []


async def test_a_turn_that_was_cancelled_meanwhile_is_not_asked_for_again() -> None:
    """Nobody wants it any more."""
    async with stage() as here:
        session, thread = await here.session()
        thread.hold_starts = asyncio.Event()
        turn = session.say(SAID)
        await until(lambda: thread.started)
        turn.cancel()
        await asyncio.sleep(0)  # the session has read it
        here.engine.die()
        thread.hold_starts.set()
        assert (await turn.result()).stopped_by == "cancel"
        assert here.engine.resumed == []


async def test_only_an_engine_that_was_started_again_is_told_what_it_forgot() -> None:
    """With its first turn; what the turn itself says goes before that."""
    async with stage() as here:
        session, _ = await here.session()
        told = []
        own = msgspec.structs.replace(SAID, permit=Permit("never"))
        for spec, is_dead in ((SAID, False), (SAID, True), (SAID, False), (own, True)):
            if is_dead:
                here.engine.die()
            turn = session.say(spec)
            await finish(here, turn)
            told.append(here.engine.threads["thread-1"].started[-1][1].permit)
        assert told == [None, Permit("untrusted"), None, Permit("never")]


async def test_an_empty_thread_that_was_lost_is_begun_anew() -> None:
    """Nothing was said in it, so that nothing is missing; everybody hears its new id."""
    async with stage() as here:
        session, _ = await here.session()
        watching = session.subscribe()
        here.engine.die()
        here.engine.unknown.add("thread-1")
        turn = session.say(TurnSpec(parts=()))
        await until(lambda: "thread-2" in here.engine.threads)
        await finish(here, turn, "thread-2")
        assert session.thread_id == "thread-2"
        assert here.engine.specs[-1] == here.engine.specs[0]
        assert here.hub.by_thread("thread-2") is session
        events = watching.take()
        assert ThreadKnown(thread_id="thread-2") in events
        assert EngineBack() in events


async def test_a_thread_that_was_spoken_in_is_never_replaced_by_an_empty_one() -> None:
    """Whoever lost its record hears of it, also where the session was opened by resuming."""
    async with stage() as here:
        session, _ = await here.session()
        await finish(here, session.say(SAID))
        other = await here.hub.resume(ME, "thread-9", SPEC)
        here.engine.die()
        here.engine.unknown |= {"thread-1", "thread-9"}
        for lost in (session, other):
            with pytest.raises(ThreadUnknown):
                await lost.say(SAID).result()
        assert len(here.engine.specs) == 1
