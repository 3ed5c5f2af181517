"""Who may use which session, how many there are, and how all of them end."""

from __future__ import annotations

import asyncio

import pytest

from laneway.base.errors import LimitReached, QuestionGone, SessionClosed, SessionUnknown
from laneway.core.hub import Limits
from laneway.core.model import Answer
from tests.core.support import ME, SPEC, stage, until, words


async def test_a_session_exists_only_for_its_own_principal() -> None:
    """Nobody else sees it, uses it or answers its questions."""
    async with stage() as here:
        session, thread = await here.session()
        assert here.hub.get(ME, session.agent_id) is session
        assert here.hub.sessions("somebody else") == []
        with pytest.raises(SessionUnknown):
            here.hub.get("somebody else", session.agent_id)
        session.say(words("a"))
        await until(lambda: thread.turn_id)
        thread.ask("q")
        await until(lambda: session.questions)
        with pytest.raises(QuestionGone):
            await here.hub.answer("somebody else", "q", Answer(choice_id="accept"))
        assert thread.answers == {}


async def test_of_many_who_resume_a_thread_at_once_the_first_does_and_all_share_the_session() -> None:
    """Two sessions on one thread would steer each other's turns, and some caller would wait for ever."""
    async with stage() as here:
        first, _ = await here.session()
        thread_id = first.thread_id
        await first.close()
        await here.hub.wait_gone(first.agent_id)
        here.engine.hold_starts = asyncio.Event()
        resumes = [asyncio.ensure_future(here.hub.resume(ME, thread_id, SPEC)) for _ in range(5)]
        await asyncio.sleep(0)
        here.engine.hold_starts.set()
        shared = await asyncio.gather(*resumes)
        assert len({session.agent_id for session in shared}) == 1
        assert here.hub.sessions(ME) == [shared[0]]


async def test_a_closed_session_gives_its_place_under_the_limit_back() -> None:
    """Another one may begin as soon as it is over."""
    async with stage(limits=Limits(sessions=1)) as here:
        first, _ = await here.session("codex")
        with pytest.raises(LimitReached):
            await here.session("other")
        await first.close()
        await until(lambda: not here.hub.sessions(ME))
        second, _ = await here.session("codex")
        assert second.identity == "codex"


async def test_a_start_that_fails_leaves_nothing_counted() -> None:
    """Its place is free again."""
    async with stage(limits=Limits(sessions=1)) as here:
        here.engine.hold_starts = asyncio.Event()
        start = asyncio.ensure_future(here.hub.start(ME, SPEC, identity="codex"))
        await until(lambda: here.hub._reserved == 1)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        here.engine.hold_starts.set()
        session, _ = await here.session("codex")
        assert here.hub.by_agent(session.agent_id) is session


async def test_resuming_a_thread_that_is_open_here_gives_its_owner_the_same_session() -> None:
    """Two sessions on one thread would break single flight."""
    async with stage() as here:
        session, _ = await here.session()
        assert await here.hub.resume(ME, session.thread_id, SPEC) is session
        with pytest.raises(SessionUnknown):
            await here.hub.resume("somebody else", session.thread_id, SPEC)


async def test_a_thread_whose_session_is_being_closed_is_free_for_whoever_resumes_it_next() -> None:
    """It waits for the end, and is neither handed the dying session nor told that there is none."""
    async with stage() as here:
        session, _ = await here.session()
        closing = asyncio.ensure_future(session.close())
        await asyncio.sleep(0)
        mine, other = await asyncio.gather(
            here.hub.resume("somebody else", session.thread_id, SPEC),
            here.hub.resume("somebody else", session.thread_id, SPEC),
        )
        assert mine is other
        assert (mine is session, mine.principal, mine.status) == (False, "somebody else", "idle")
        await closing


async def test_a_fork_is_a_session_of_its_own() -> None:
    """On a thread of its own."""
    async with stage() as here:
        session, _ = await here.session()
        copy = await here.hub.fork(ME, session.thread_id, SPEC)
        assert copy.thread_id == f"{session.thread_id}-fork"
        assert {s.agent_id for s in here.hub.sessions(ME)} == {session.agent_id, copy.agent_id}


async def test_shutdown_closes_all_sessions_and_then_the_engine() -> None:
    """Running turns are interrupted; the threads go with the engine and need no release of their own."""
    async with stage() as here:
        pairs = [await here.session() for _ in range(5)]
        turns = [session.say(words("a")) for session, _ in pairs]
        await until(lambda: all(thread.turn_id for _, thread in pairs))
        await here.hub.shutdown()
        assert [(await turn.result()).stopped_by for turn in turns] == ["close"] * 5
        assert not any(thread.is_released for _, thread in pairs)
        assert here.engine.is_closed


async def test_shutdown_keeps_its_deadline_when_the_engine_is_deaf() -> None:
    """One session that will not end does not hold up the others, nor the end."""
    async with stage(is_obedient=False, shutdown_s=0.05) as here:
        deaf, thread = await here.session()
        turn = deaf.say(words("a"))
        await until(lambda: thread.turn_id)
        idle, idle_thread = await here.session()
        await here.hub.shutdown()
        assert (deaf.status, idle.status) == ("closed", "closed")
        assert idle_thread.turn_id is None
        assert here.engine.is_closed
        with pytest.raises(SessionClosed):
            await turn.result()
