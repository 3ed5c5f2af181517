"""What a lane has done is told to the others until their engines have recorded it, and then no more."""

from __future__ import annotations

from pathlib import Path

from laneway.core.hand_back_tag import END, START
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from tests.doors.chat.chats import Talk, talking


async def working(turn: ScriptedTurn) -> None:
    """Codex does what it is told; the turns of others are played by hand."""
    turn.accept()
    turn.say(f"I did: {turn.given.text}")


async def done_by_codex(talk: Talk, task: str, count: int = 1) -> None:
    await talk.say(f"/codex {task}")
    await talk.view.ended("codex", count)


async def test_it_is_told_again_until_the_engine_has_recorded_it(tmp_path: Path) -> None:
    """Not gone with a turn that was stopped, or that failed, before its input was recorded."""
    lanes = ScriptedLanes(plays={"codex": working})
    async with talking(tmp_path, lanes) as talk:
        await done_by_codex(talk, "paint the shed")
        claude: list[ScriptedTurn] = []
        for number, text in enumerate(("one", "two", "three", "four"), 1):
            await talk.say(text)
            turn = await lanes.given(text)
            claude.append(turn)
            if number == 1:
                await talk.say("/stop")
            elif number == 2:
                turn.fail()
            else:
                turn.accept()
                turn.done()
            await talk.view.ended("claude", number)
        told = [turn.given.context for turn in claude]
    assert told[0] == told[1] == told[2]
    assert "Task: paint the shed" in told[0]
    assert (told[0].startswith(START), told[0].endswith(END)) == (True, True)
    assert told[3] == ""


async def test_it_outlives_a_restart_and_a_lane_that_could_not_be_opened(tmp_path: Path) -> None:
    """A lane that works for the first time is told all that was done before it."""
    first = ScriptedLanes(plays={"codex": working})
    async with talking(tmp_path, first) as talk:
        await done_by_codex(talk, "paint the shed")
        await talk.say("one")
        await first.given("one")
        assert "Task: paint the shed" in first.lane("claude").turn.given.context
    second = ScriptedLanes(plays={"codex": working})
    async with talking(tmp_path, second) as talk:
        await talk.say("/help")  # makes them
        await talk.view.told("Lanes:")
        second.lane("claude").dies_at_open = True
        await talk.say("two")
        assert (await talk.view.ended("claude")).status == "failed"
        await talk.say("three")
        assert "Task: paint the shed" in (await second.given("three")).given.context


async def test_what_several_turns_did_adds_up_and_each_lane_is_told_once(tmp_path: Path) -> None:
    """In order, also what the leading lane did meanwhile; a lane is never told of its own turns."""
    lanes = ScriptedLanes(plays=dict.fromkeys(("claude", "codex", "rehearse"), working))
    async with talking(tmp_path, lanes) as talk:
        await done_by_codex(talk, "paint the shed")
        await done_by_codex(talk, "dry the shed", 2)
        await talk.say("is that all?")
        await talk.view.ended("claude")
        await done_by_codex(talk, "lock the shed", 3)
        await talk.say("/rehearse what happened?")
        await talk.view.ended("rehearse")
        to_claude = lanes.lane("claude").turn.given.context
        to_codex = lanes.lane("codex").turn.given.context
        to_rehearse = lanes.lane("rehearse").turn.given.context
        assert [turn.given.context for turn in lanes.lane("codex").turns[:2]] == ["", ""]
    assert 0 < to_claude.index("Task: paint the shed") < to_claude.index("Task: dry the shed")
    assert "Task: is that all?" in to_codex
    assert "the shed" not in to_codex
    tasks = ("paint the shed", "dry the shed", "is that all?", "lock the shed")
    places = [to_rehearse.index(f"Task: {task}") for task in tasks]
    assert places == sorted(places)
    assert to_rehearse.count(END) == 1
