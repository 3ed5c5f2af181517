"""A misbehaving app-server: sudden ends, silence, floods, unreadable messages."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.base.errors import EngineLost, EngineRefused, EngineSilent, SessionStuck
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Hub
from laneway.core.model import Failure, Other, Text, TurnDone, TurnStarted
from laneway.core.ports import ThreadSpec
from laneway.core.session import Session, Timing
from laneway.testing.processes import wait_gone
from laneway.wire.child import STDERR_TAIL_BYTES, Child, Exit
from tests.codex.support import ME, only, play, say

SPEC = ThreadSpec(cwd=Path("/"))


def engine(*flags: str, handshake_s: float = 30.0, diagnose: Callable[[], None] | None = None) -> CodexEngine:
    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        argv = [sys.executable, "-m", "laneway.testing.misbehave", *flags]
        return await Child.spawn(argv, on_stdout=on_bytes, on_end=on_end)

    return CodexEngine(connect, handshake_s=handshake_s, diagnose=diagnose)


@asynccontextmanager
async def misbehaving(*flags: str, revive: bool = True, **timing: Any) -> AsyncIterator[Session]:
    async with (
        asyncio.timeout(60),
        Hub(engine(*flags), LoopClock(), timing=Timing(**timing), revive=revive) as hub,
    ):
        yield await hub.start(ME, SPEC)


def engine_of(session: Session) -> CodexEngine:
    found = session._handle._engine
    assert isinstance(found, CodexEngine)
    return found


@pytest.mark.parametrize(
    ("prompt", "how"),
    [("exit 3", "exit code 3"), ("exit 0", "exit code 0"), ("signal SIGSEGV", "killed by SIGSEGV")],
)
async def test_an_exit_in_mid_turn_fails_the_turn_with_its_cause(prompt: str, how: str) -> None:
    """By code or by signal, after the last word that was said; then the next turn starts a new process."""
    async with misbehaving() as session:
        events, result = await play(session, prompt)
        assert [event.text for event in only(events, Text)] == ["so far"]
        assert result.failure == Failure(kind="engine_lost", message=f"Codex ended unexpectedly: {how}")
        assert session.is_engine_lost
        _, again = await play(session, "hello")
        assert again.status == "completed"


async def test_where_it_must_not_be_revived_every_later_call_hears_of_the_death() -> None:
    """Never a silent restart."""
    async with misbehaving(revive=False) as session:
        await play(session, "exit 3")
        for _ in range(2):
            with pytest.raises(EngineLost, match="exit code 3"):
                await say(session, "hello").result()


async def test_a_hanging_engine_is_told_to_stop_and_then_given_up() -> None:
    """The caller is answered within the time it was promised; nothing is left running."""
    async with misbehaving("--deaf", turn_s=0.2, stop_s=0.2) as session:
        pid = (await engine_of(session).link()).pid
        assert pid is not None
        with pytest.raises(SessionStuck):
            await say(session, "hang").result()
        with pytest.raises(SessionStuck):
            await say(session, "more").result()
    await wait_gone(pid)


async def test_an_engine_that_never_shakes_hands_is_an_error_not_a_hang() -> None:
    """And its process is gone."""
    mute = engine("--mute", "--deaf", handshake_s=0.3)
    with pytest.raises(EngineLost, match="no answer to initialize"):
        await mute.abilities()
    await mute.aclose()


async def test_a_silent_engine_is_called_silent_after_the_time_that_is_named() -> None:
    """Nobody runs it a second time to learn more, and waits again: that would be said after another time."""

    def diagnose() -> None:
        raise AssertionError("it was asked for its version as well")

    mute = engine("--mute", handshake_s=0.3, diagnose=diagnose)
    with pytest.raises(EngineSilent, match=r"^Codex does not answer, and was ended: .* within 0\.3 s$"):
        await mute.abilities()
    await mute.aclose()


async def test_a_flood_on_standard_error_blocks_nothing_and_is_kept_as_a_tail() -> None:
    """Twenty megabytes in the middle of a turn."""
    async with misbehaving() as session:
        _, result = await play(session, "flood")
        assert result.status == "completed"
        link = await engine_of(session).link()
        assert set(link.stderr_tail) == {"x"}
        assert len(link.stderr_tail) <= 2 * STDERR_TAIL_BYTES


async def test_nonsense_between_messages_is_counted_and_the_turn_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Unknown methods and odd shapes still reach the doors, as `Other`."""
    caplog.set_level(logging.CRITICAL)
    async with misbehaving() as session:
        events, result = await play(session, "garbage")
        assert result.status == "completed"
        odd = {event.method for event in only(events, Other)}
        assert odd == {"brand/new", "turn/plan/updated", "item/agentMessage/delta"}
        assert (await engine_of(session).link()).garbage == 5


async def test_a_turn_told_before_its_answer_is_still_ours() -> None:
    """Seen on the real Codex right after an interrupt: the notification overtakes the answer."""
    async with misbehaving() as session:
        turn = say(session, "early")
        events = [event async for event in turn.events]
        assert events[0] == TurnStarted(turn_id="turn-1", ticket=turn.ticket, frame=events[0].frame)
        assert len(only(events, TurnStarted)) == len(only(events, TurnDone)) == 1


async def test_an_answer_with_the_running_turn_is_not_taken_for_a_new_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`turn/start` on a busy thread silently steers: a bug to log, and an error to the caller."""
    async with misbehaving() as session:
        running = say(session, "hang")
        await anext(running.events)
        from laneway.core.ports import TextPart, TurnSpec

        with pytest.raises(EngineRefused, match="already running"):
            await session._handle.thread.start_turn("t", TurnSpec(parts=(TextPart("steered"),)))
        assert "steered turn turn-1" in caplog.text
        running.cancel()
        assert (await running.result()).status == "interrupted"


async def test_an_unknown_request_is_answered_with_method_not_found() -> None:
    """Never an empty result, never silence."""
    async with misbehaving() as session:
        events, _ = await play(session, "ask")
        told = "".join(event.text for event in only(events, Text))
        assert told == 'so far{"code": -32601, "message": "Laneway does not serve brand/new/request"}'


async def test_overload_is_retried_for_reads_and_never_for_a_turn() -> None:
    """A turn sent twice might run twice."""
    async with misbehaving() as session:
        assert (await engine_of(session).list_threads()).threads == ()
        with pytest.raises(EngineRefused, match="overloaded") as refused:
            await say(session, "overload").result()
        assert refused.value.method == "turn/start"


async def test_a_death_answers_everything_that_waits_for_codex() -> None:
    """Calls in flight included."""
    async with misbehaving() as session:
        link = await engine_of(session).link()
        running = say(session, "hang")
        await anext(running.events)
        calls = [asyncio.ensure_future(link.call("thread/never")) for _ in range(3)]
        assert isinstance(link._transport, Child)
        link._transport.kill()
        assert (await running.result()).failure is not None
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} <= {dict, EngineLost}
