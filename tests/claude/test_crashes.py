"""Deaths and ends at instants that the real Claude Code offers only now and then."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from laneway.base.errors import EngineClosed, EngineError, EngineRefused
from laneway.core.model import Accepted, Notice, TurnDone, TurnStarted, UserSaid
from laneway.core.ports import TextPart, TurnSpec
from tests.claude.pretending import GREETS, HELLO, LIVES, pretending, session_of
from tests.codex.support import first, only, play, say
from tests.core.support import until

DEADLINE_S = 60


def lives(folder: Path) -> list[str]:
    return (folder / "lives").read_text().splitlines()


async def test_what_stands_in_the_transcript_is_not_sent_again_though_its_start_was_never_told(
    tmp_path: Path,
) -> None:
    """Claude Code died between the two: the turn has begun, was accepted, and is lost."""
    script = (
        GREETS
        + LIVES
        + """
given = asked()
record(given)
if life == 1:
    os._exit(9)
say(type="command_lifecycle", command_uuid=given["uuid"], state="started")
end("two")
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        events, result = await play(session, "first")
        assert (result.status, result.failure and result.failure.kind) == ("failed", "engine_lost")
        kinds = [type(event) for event in events if isinstance(event, TurnStarted | Accepted | TurnDone)]
        assert kinds == [TurnStarted, Accepted, TurnDone]
        assert only(events, Notice) == []
        _, result = await play(session, "second")
        assert result.text == "two"
        assert len(lives(tmp_path)) == 2


@pytest.mark.parametrize("is_begun", [True, False])
async def test_a_prompt_that_claude_code_has_already_is_not_waited_for(
    tmp_path: Path, *, is_begun: bool
) -> None:
    """It leaves out an input that it reads in its transcript, and says only that it is completed."""
    script = (
        HELLO
        + LIVES
        + """
hello = asked()
kept = lives + ".kept"
if life == 2:
    record(json.load(open(kept)))  # at an instant at which nobody looks
answer(hello, account={{}}, claude_code_version="2.1.325")
given = asked()
if life == 1:
    json.dump(given, open(kept, "w"))
    if IS_BEGUN:
        say(type="command_lifecycle", command_uuid=given["uuid"], state="started")
    os._exit(9)
say(type="user", isReplay=True, uuid=given["uuid"], message=given["message"])
say(type="command_lifecycle", command_uuid=given["uuid"], state="completed")
record(begin())
end("two")
asked()
""".replace("IS_BEGUN", str(is_begun))
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        events, result = await play(session, "first")
        assert (result.status, result.failure and result.failure.kind) == ("failed", "engine_lost")
        kinds = [type(event) for event in events if isinstance(event, TurnStarted | Accepted | TurnDone)]
        assert kinds == [TurnStarted, Accepted, TurnDone]
        _, result = await play(session, "second")
        assert result.text == "two"
        assert len(lives(tmp_path)) == 2


async def test_what_was_added_to_a_lost_prompt_is_sent_again_with_it(tmp_path: Path) -> None:
    """In its order, and whoever added it is told when it is taken."""
    script = (
        GREETS
        + LIVES
        + """
given, added = begin(), None
if life == 1:
    added = asked()
    os._exit(9)
while added is None or added["type"] != "user":
    added = asked()
for each in (given, added):
    record(each)
    say(type="user", isReplay=True, uuid=each["uuid"], message=each["message"])
say(type="command_lifecycle", command_uuid=added["uuid"], state="queued")
say(type="command_lifecycle", command_uuid=added["uuid"], state="started")
end("both")
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "first")
        await first(turn, TurnStarted)
        await session.steer((TextPart("and this"),), ticket="added")
        rest = [event async for event in turn.events]
        assert (await turn.result()).text == "both"
        assert [event.text for event in only(rest, UserSaid)] == ["first", "and this"]
        assert {event.client_id for event in only(rest, Accepted)} == {turn.ticket, "added"}
        assert len(lives(tmp_path)) == 2


async def test_one_that_dies_again_and_again_is_started_a_second_time_and_no_third(tmp_path: Path) -> None:
    """Else a prompt that kills it would be sent for ever."""
    script = GREETS + LIVES + "begin()\nos._exit(9)\n"
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (engine, hub):
        session = await session_of(hub, tmp_path)
        _, result = await play(session, "first")
        assert (result.status, result.failure and result.failure.kind) == ("failed", "engine_lost")
        assert len(lives(tmp_path)) == 2
        assert not engine.is_running


async def test_one_that_cannot_be_started_again_loses_the_turn(tmp_path: Path) -> None:
    """Whatever the reason is: somebody waits for the end of it."""
    script = GREETS + LIVES + "begin()\nos.unlink(sys.argv[0])\nos._exit(9)\n"
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        _, result = await play(session, "first")
        assert (result.status, result.failure and result.failure.kind) == ("failed", "engine_lost")


async def test_a_turn_that_is_being_stopped_is_not_sent_again(tmp_path: Path) -> None:
    """Claude Code dies of the interrupt: nobody wants the turn any more, and nobody would stop it."""
    script = (
        GREETS
        + LIVES
        + """
given = begin()
if life == 1:
    asked()
    os._exit(9)
record(given)
end("two")
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "first")
        await first(turn, TurnStarted)
        turn.cancel()
        assert [event async for event in turn.events if isinstance(event, Accepted)] == []
        result = await turn.result()
        assert (result.status, result.failure and result.failure.kind) == ("failed", "engine_lost")
        _, result = await play(session, "second")
        assert result.text == "two"
        assert len(lives(tmp_path)) == 2


async def test_a_turn_that_is_stopped_while_another_process_starts_for_it_is_not_sent_again(
    tmp_path: Path,
) -> None:
    """It is over at once, and the next turn gets a process of its own."""
    script = (
        HELLO
        + LIVES
        + """
if life == 2:
    open(lives + ".second", "w").write("starts")
    sys.exit(0 if sys.stdin.read() else 1)
answer(asked(), account={{}}, claude_code_version="2.1.325")
given = begin()
if life == 1:
    os._exit(9)
record(given)
end("two")
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "first")
        await until(lambda: (tmp_path / "lives.second").exists())
        turn.cancel()
        result = await turn.result()
        assert (result.status, result.failure and result.failure.kind) == ("failed", "engine_lost")
        _, result = await play(session, "second")
        assert result.text == "two"
        assert len(lives(tmp_path)) == 3


async def test_an_interrupt_waits_until_the_turn_has_begun_again(tmp_path: Path) -> None:
    """One that comes before that stops nothing: the turn would run to its end."""
    script = (
        GREETS
        + LIVES
        + """
if life == 1:
    begin()
    os._exit(9)
given = asked()
open(lives + ".second", "w").write("has it")
gate = os.path.join(os.environ["HOME"], "gate")
while not os.path.exists(gate):
    time.sleep(0.01)
say(type="command_lifecycle", command_uuid=given["uuid"], state="started")
record(given)
request = asked()
answer(request)
say(type="result", subtype="success", is_error=False, terminal_reason="aborted_streaming")
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script, stop_s=30.0) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "first")
        await until(lambda: (tmp_path / "lives.second").exists())
        turn_id = (await first(turn, TurnStarted)).turn_id
        with pytest.raises(EngineRefused, match="has yet to begin again"):
            await session._handle.thread.interrupt(turn_id)
        turn.cancel()
        (tmp_path / "gate").touch()
        result = await turn.result()
        assert (result.status, result.stopped_by) == ("interrupted", "cancel")


async def test_one_that_dies_after_its_handshake_is_not_waited_for(tmp_path: Path) -> None:
    """While the repository is looked at once more, which takes its time in a large one."""
    work = tmp_path / "work"
    (work / ".claude").mkdir(parents=True)
    for number in range(1500):
        (work / ".claude" / f"{number}.md").write_text("text")
    state = {"projects": {str(work.resolve()): {"hasTrustDialogAccepted": True}}}
    (tmp_path / ".claude.json").write_text(json.dumps(state))
    script = (
        GREETS
        + LIVES
        + """
if life == 2:
    os._exit(9)
while True:
    given = begin()
    record(given)
    end(str(life))
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, work)
        _, result = await play(session, "first")
        assert result.text == "1"
        # Another model needs another process.
        result = await session.say(TurnSpec(parts=(TextPart("second"),), model="other")).result()
        assert result.text == "3"
        assert "--setting-sources=user,project,local" in lives(tmp_path)[-1]


async def test_an_engine_that_is_closed_ends_what_is_only_being_started(tmp_path: Path) -> None:
    """Whoever starts it gets an error at once, and no process is left."""
    script = HELLO + LIVES + "open(lives + '.pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (engine, hub):
        opening = asyncio.create_task(session_of(hub, tmp_path))
        note = tmp_path / "lives.pid"
        await until(lambda: note.exists() and bool(note.read_text()))
        await engine.aclose()
        with pytest.raises(EngineClosed):
            await opening
        with pytest.raises(ProcessLookupError):
            os.kill(int(note.read_text()), 0)
        with pytest.raises(EngineError):
            await session_of(hub, tmp_path)


async def test_one_that_hangs_and_ignores_signals_is_gone_after_a_close(tmp_path: Path) -> None:
    """In the middle of a turn, with its standard input full or not."""
    script = (
        GREETS
        + """
import signal
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_IGN)
given = begin()
open(os.path.join(os.environ["HOME"], "pid"), "w").write(str(os.getpid()))
while True:
    time.sleep(600)
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script, stop_s=0.1) as (engine, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "hello")
        await first(turn, TurnStarted)
        note = tmp_path / "pid"
        await until(lambda: note.exists() and bool(note.read_text()))
        await engine.aclose()
        with pytest.raises(ProcessLookupError):
            os.kill(int(note.read_text()), 0)
