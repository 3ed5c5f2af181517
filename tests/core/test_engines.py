"""Several engines in one hub: who runs a session, and whose death ends what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf

import msgspec
import pytest

from laneway.base.errors import EngineClosed, EngineLost, UsageError
from laneway.core.hub import Hub
from laneway.core.session import Session
from laneway.testing.clock import HandClock
from laneway.testing.engine import HandEngine, HandThread
from tests.core.support import ME, SPEC, TIMING, until, words

ON_CLAUDE = msgspec.structs.replace(SPEC, backend="claude")


class Two:
    """A hub with two engines: one process for all threads, and a process for each."""

    def __init__(self) -> None:
        self.codex = HandEngine()
        self.claude = HandEngine(backend="claude", shares_process=False)
        self.made = 0
        self.clock = HandClock()
        self.hub = Hub(self.codex, self.clock, others={"claude": self._make}, timing=TIMING)

    def _make(self) -> HandEngine:
        self.made += 1
        return self.claude

    async def on_claude(self) -> tuple[Session, HandThread]:
        session = await self.hub.start(ME, ON_CLAUDE)
        return session, self.claude.threads[session.thread_id]


@asynccontextmanager
async def two() -> AsyncIterator[Two]:
    here = Two()
    async with here.hub:
        yield here
        here.clock.advance(1000)


async def test_a_session_runs_on_the_engine_that_it_asks_for() -> None:
    """The default one without asking; the other is made once, and not before."""
    async with two() as here:
        usual = await here.hub.start(ME, SPEC)
        assert (usual.engine, here.made, here.hub.engines.in_use) == (here.codex, 0, (here.codex,))
        for _ in range(2):
            session, _ = await here.on_claude()
            assert session.engine is here.claude
        assert (here.made, here.hub.engines.backends) == (1, ("codex", "claude"))
        resumed = await here.hub.resume(ME, "earlier", ON_CLAUDE)
        copy = await here.hub.fork(ME, "earlier", ON_CLAUDE)
        assert [resumed.engine, copy.engine] == [here.claude] * 2
        assert here.hub.engine is here.codex


async def test_an_engine_that_is_not_here_is_refused_by_name() -> None:
    """With those that are; nothing is counted."""
    async with Hub(HandEngine(), HandClock()) as hub:
        with pytest.raises(UsageError, match="There is no engine Claude here: take one of codex"):
            await hub.start(ME, ON_CLAUDE)
        assert hub.sessions(ME) == []


async def test_the_death_of_one_threads_own_process_ends_that_thread_only() -> None:
    """Its turn fails in its engine's name; its next turn resumes it; nobody else hears of it."""
    async with two() as here:
        dying, dying_thread = await here.on_claude()
        other, other_thread = await here.on_claude()
        usual = await here.hub.start(ME, SPEC)
        turn, others_turn = dying.say(words("a")), other.say(words("b"))
        await until(lambda: dying_thread.turn_id and other_thread.turn_id)
        dying_thread.die("killed by SIGKILL")
        failure = (await turn.result()).failure
        assert failure is not None
        assert (failure.kind, failure.message) == (
            "engine_lost",
            "Claude ended unexpectedly: killed by SIGKILL",
        )
        assert (dying.is_engine_lost, other.is_engine_lost, usual.is_engine_lost) == (True, False, False)
        with pytest.raises(EngineLost, match="Claude ended unexpectedly: killed by SIGKILL"):
            await dying.history()
        other_thread.end(text="done")
        assert (await others_turn.result()).text == "done"
        again = dying.say(words("c"))
        await until(lambda: here.claude.threads[dying.thread_id].turn_id)
        here.claude.threads[dying.thread_id].end(text="back")
        assert (await again.result()).text == "back"
        assert [thread_id for thread_id, _ in here.claude.resumed] == [dying.thread_id]


async def test_a_shutdown_closes_every_engine_that_was_made() -> None:
    """None is made for a caller who comes too late."""
    here = Two()
    await here.on_claude()
    await here.hub.start(ME, SPEC)
    await here.hub.shutdown()
    assert (here.codex.is_closed, here.claude.is_closed) == (True, True)
    late = Two()
    await late.hub.shutdown()
    with pytest.raises(EngineClosed):
        late.hub.engines.get("claude")
    assert late.made == 0


async def test_what_a_caller_gives_as_context_comes_behind_the_sessions_own() -> None:
    """A front end adds to the briefing; it does not replace it."""
    engine = HandEngine()
    async with Hub(engine, HandClock(), compose=lambda session: "briefing") as hub:
        session = await hub.start(ME, SPEC)
        thread = engine.threads[session.thread_id]
        for context in ("of the lane", ""):
            session.say(msgspec.structs.replace(words("go"), context=context))
            await until(lambda: thread.turn_id)
            thread.end()
        assert [spec.context for _, spec in thread.started] == ["briefing\n\nof the lane", "briefing"]


async def test_each_session_may_have_its_own_time_for_questions() -> None:
    """A short one, the usual one of the process, and one that waits for ever."""
    async with two() as here:
        sessions = {
            question_s: await here.hub.start(ME, msgspec.structs.replace(SPEC, question_s=question_s))
            for question_s in (20.0, None, inf)
        }
        threads = {key: here.codex.threads[session.thread_id] for key, session in sessions.items()}
        for key, session in sessions.items():
            session.say(words("go"))
            await until(partial(lambda key: threads[key].turn_id, key))
            threads[key].ask("q")
        await until(lambda: all(session.questions for session in sessions.values()))
        here.clock.advance(21)
        await until(lambda: not sessions[20.0].questions)
        assert sessions[None].questions
        here.clock.advance(100_000)
        await until(lambda: not sessions[None].questions)
        assert [question.question_id for question in sessions[inf].questions] == ["q"]
        assert threads[20.0].answers["q"].choice_id == "decline"
