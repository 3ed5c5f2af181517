"""The real Codex dies, or another process has its thread: nothing hangs, nothing is lost twice."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import ActiveWriter, EngineError, ThreadUnknown
from laneway.core.hub import Hub
from laneway.core.model import (
    Accepted,
    Activity,
    Asked,
    EngineBack,
    EngineGone,
    Event,
    Text,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.testing.processes import runs, wait_gone
from laneway.wire.guardian import descendants
from tests.codex.support import ME, Stage, first, only, play, real, say
from tests.core.support import LOOK_S


async def kill_codex(here: Stage) -> None:
    """SIGKILL, to the very process that we started."""
    pid = (await here.rehearsal.engine.link()).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


STAGES: list[tuple[type[Event], tuple[str, ...]]] = [
    (TurnStarted, ("%stream 1000 words over 60 seconds",)),
    (Accepted, ("%stream 1000 words over 60 seconds",)),
    (Text, ("%stream 1000 words over 60 seconds",)),
    (Activity, ("%run sleep 60",)),
    (Asked, ("%run! touch x",)),
]


@pytest.mark.parametrize(("stage", "lines"), STAGES, ids=[kind.__name__ for kind, _ in STAGES])
async def test_killed_at_any_stage_the_turn_fails_and_the_next_one_resumes(
    stage: type[Event], lines: tuple[str, ...]
) -> None:
    """One TurnDone, everything open closed, the same thread back with what it knew before."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say remember the milk")
        watching = session.subscribe()
        turn = say(session, *lines)
        await first(turn, stage)
        await kill_codex(here)
        result = await turn.result()
        assert (result.status, result.failure and result.failure.kind) == ("failed", "engine_lost")
        assert result.failure is not None
        assert result.failure.message == "Codex ended unexpectedly: killed by SIGKILL"
        assert session.questions == []
        _, again = await play(session, "%say back again")
        assert again.text == "back again"
        assert "remember the milk" in here.model_input()
        check_order(watching.take())


def check_order(events: list[Event]) -> None:
    """One end per start, no activity left running, no question left open, gone before back."""
    kinds = [type(event) for event in events]
    assert kinds.count(TurnStarted) == kinds.count(TurnDone) == 2
    assert kinds.index(TurnDone) < kinds.index(EngineGone) < kinds.index(EngineBack)
    started = {event.item_id for event in only(events, Activity) if event.status == "running"}
    ended = {event.item_id for event in only(events, Activity) if event.status != "running"}
    assert started == ended
    asked = [event.question.question_id for event in only(events, Asked)]
    assert asked == [event.question_id for event in only(events, Withdrawn)]


@pytest.mark.needs("input_kept")
async def test_an_input_is_kept_by_codex_once_it_is_accepted() -> None:
    """The line that mail is marked read by: behind it, a kill loses nothing."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say ready")
        turn = say(session, "%stream 1000 words over 60 seconds")
        await first(turn, Accepted)
        await kill_codex(here)
        await turn.result()
        await play(session, "%say back")
        page = await session.history()
        said = [event.text for event in page.events if isinstance(event, UserSaid)]
        assert said == ["%say ready", "%stream 1000 words over 60 seconds", "%say back"]


@pytest.mark.needs("writer_lock")
async def test_a_thread_in_use_is_refused_by_name_can_be_forked_and_is_free_after_release() -> None:
    """Two processes on one thread: a typed error, not a corrupted transcript."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say the secret word is lane")
        other = here.rehearsal.another_engine()
        async with Hub(other, LoopClock()) as second:
            with pytest.raises(ActiveWriter) as refused:
                await second.resume(ME, session.thread_id, here.spec())
            assert refused.value.thread_id == session.thread_id
            copy = await second.fork(ME, session.thread_id, here.spec())
            _, result = await play(copy, "%say in the copy")
            assert result.text == "in the copy"
            assert "the secret word is lane" in here.model_input()
            await session.close()
            taken_over = await second.resume(ME, session.thread_id, here.spec())
            _, result = await play(taken_over, "%say mine now")
            assert result.text == "mine now"
            assert "in the copy" not in here.model_input()


async def test_a_thread_that_nobody_knows_is_an_error_of_its_own() -> None:
    """Told apart from a Codex that refuses for another reason."""
    async with real() as here:
        with pytest.raises(ThreadUnknown):
            await here.hub.resume(ME, "01a1e340-0000-7000-8000-000000000000", here.spec())
        with pytest.raises(EngineError):
            await here.hub.resume(ME, "not a thread id", here.spec())


async def test_a_thread_of_which_nothing_was_written_is_unknown_too() -> None:
    """Codex was killed between making the file of its first turn and writing into it."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say hello")
        await session.close()
        await here.hub.wait_gone(session.agent_id)
        (rollout,) = here.rehearsal.home.glob(f"sessions/**/*{session.thread_id}.jsonl")
        rollout.write_bytes(b"")
        with pytest.raises(ThreadUnknown):
            await here.hub.resume(ME, session.thread_id, here.spec())


async def test_closing_the_engine_leaves_nothing_running() -> None:
    """A `setsid` child of a command with full access outlives Codex itself, but not us."""
    before = set(descendants(os.getpid()))

    def started_since() -> list[int]:
        return [pid for pid in descendants(os.getpid()) if pid not in before]

    async with real() as here:
        session = await here.session(sandbox="danger-full-access", approval_policy="never")
        turn = say(session, "%run setsid sleep 600 & sleep 600")
        await first(turn, Activity)
        codex = (await here.rehearsal.engine.link()).pid
        tree = started_since()
        async with asyncio.timeout(20):
            while sum(runs(pid, "sleep") for pid in tree) < 2:
                await asyncio.sleep(LOOK_S)
                tree = started_since()
        assert codex in tree
        await here.hub.shutdown()
        for pid in tree:
            await wait_gone(pid)
