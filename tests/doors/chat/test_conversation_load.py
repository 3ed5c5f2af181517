"""Conversations under load: long output, views that are slow, lanes that misbehave, many at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from laneway.core.model import Text, TurnDone, TurnStarted
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import OutputDelta, Shown, TextDelta, TextDone, TurnEnded
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn, echo
from laneway.testing.clock import HandClock
from tests.doors.chat.chats import Talk, talking

LINES = 10_000


async def flooding(turn: ScriptedTurn) -> None:
    """Ten thousand lines of a command, ten thousand of text."""
    turn.accept()
    turn.command("yes")
    for number in range(LINES):
        turn.output(f"line {number}\n")
        turn.text(f"word {number}\n")
    turn.command("yes", status="completed", exit_code=0, output="…")
    turn.done()


async def test_ten_thousand_lines_arrive_in_order_and_whole(tmp_path: Path) -> None:
    """Deltas may be left out where the store is slow; the text at its end is complete."""
    async with talking(tmp_path, ScriptedLanes(play=flooding)) as talk:
        await talk.say("go")
        await talk.view.ended("claude")
        texts = [each.text for each in talk.view.all(TextDone)]
        assert texts == ["".join(f"word {number}\n" for number in range(LINES))]
        offsets = [each.offset for each in talk.view.all(TextDelta)]
        assert offsets == sorted(offsets)
        outputs = [each.text for each in talk.view.all(OutputDelta)]
        assert outputs == sorted(outputs, key=lambda line: int(line.split()[1]))
        numbers = [each.number for each in talk.view.shown if each.number]
        assert numbers == list(range(1, len(numbers) + 1))
        assert (await talk.view.receipt(await talk.say("/status"), "done")).kind == "done"


async def test_a_stop_is_heard_in_the_middle_of_a_flood(tmp_path: Path) -> None:
    """Output does not stand in front of what people say."""

    async def endless(turn: ScriptedTurn) -> None:
        turn.accept()
        while not turn.is_done:
            turn.text("word ")
            await asyncio.sleep(0)

    async with talking(tmp_path, ScriptedLanes(play=endless)) as talk:
        await talk.say("go")
        await talk.view.wait(TextDelta, count=100)
        await talk.say("/stop")
        assert (await talk.view.ended("claude")).stopped_by == "stop"


async def test_a_view_that_missed_something_reads_it_again_by_its_number(tmp_path: Path) -> None:
    """It left, came back, and finds what was stored meanwhile; another view was not slowed."""
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        other = Talk(talk.chat, Place("web", "slow"))
        conversation_id = await talk.conversation_id
        seen = (await other.join(conversation_id)).last_number
        other.chat.leave(other.place, other.view)
        for number in range(1, 4):
            await talk.say(f"message {number}")
            await talk.view.ended("claude", number)
        assert other.view.shown == []
        missed: list[Shown] = []
        while found := await other.chat.outputs(conversation_id, seen, 4):
            missed += found
            seen = found[-1].number
        assert [each.output for each in missed] == talk.view.stored
        state = await other.join(conversation_id)
        assert state.last_number == seen


async def test_a_view_that_joins_in_the_middle_of_a_text_gets_its_beginning(tmp_path: Path) -> None:
    """As far as it has come; what follows has the right offset."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.say("go")
        turn = await lanes.given("go")
        turn.text("The shed ")
        await talk.view.wait(TextDelta)
        other = Talk(talk.chat, Place("web", "late"))
        state = await other.join(await talk.conversation_id)
        (partial,) = state.texts
        assert partial.text == "The shed "
        turn.text("is red.")
        more = await other.view.wait(TextDelta)
        assert (more.part, more.offset, more.text) == (partial.part, len(partial.text), "is red.")
        turn.done()
        assert (await other.view.wait(TextDone)).text == "The shed is red."


async def test_an_engine_that_falls_silent_after_its_last_words_is_warned_of_and_ended(
    tmp_path: Path,
) -> None:
    """Its text was complete, its turn never ended: nothing waits for ever."""
    clock = HandClock()
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes, clock=clock) as talk:
        await talk.say("go")
        turn = await lanes.given("go")
        turn.accept()
        turn.command("make", status="completed", exit_code=0)
        turn.text("That is all.")
        lanes.lane("claude").obeys = False
        later = await talk.say("/queue next")
        await talk.view.receipt(later)
        clock.advance(301)
        await talk.view.told("has been silent for 5 minutes")
        clock.advance(300)
        await turn.interrupted()
        clock.advance(11)
        ended = await talk.view.ended("claude")
        assert ended.status == "interrupted"
        assert talk.view.all(TextDone)[0].text == "That is all."
        await lanes.given("next")
        assert talk.view.receipts(later) == ["queued", "begun"]


async def test_words_that_a_turn_takes_in_the_moment_of_its_end_are_not_lost_nor_sent_twice(
    tmp_path: Path,
) -> None:
    """The race of a steer and an end: taken, they are part of the turn; not taken, they have their own."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes, busy="steer") as talk:
        for number in range(20):
            await talk.say(f"turn {number}")
            turn = await lanes.given(f"turn {number}")
            more = await talk.say(f"more {number}")
            for _ in range(number):
                await asyncio.sleep(0)
            turn.done()
            receipt = await talk.view.receipt(more)
            if receipt.kind == "steered":
                assert [each.text for each in turn.steers] == [f"more {number}"]
                continue
            own = await lanes.given(f"more {number}")
            assert turn.steers == []
            own.done()
        await talk.chat.wait_ready(await talk.conversation_id)
        given = [each.given.text for lane in lanes.made for each in lane.turns]
        given += [each.text for lane in lanes.made for turn in lane.turns for each in turn.steers]
        assert sorted(given) == sorted(f"{kind} {n}" for kind in ("turn", "more") for n in range(20))


async def test_a_lane_that_cannot_be_opened_fails_its_turn_and_the_next_tries_again(tmp_path: Path) -> None:
    """Its own error is in the log, not in the chat."""
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes) as talk:
        talk.chat.commands(await talk.conversation_id)  # makes the lanes
        lanes.lane("codex").dies_at_open = True
        await talk.say("/codex one")
        ended = await talk.view.ended("codex")
        assert ended.failure is not None
        assert ended.failure.message == "codex could not be started. The log says why."
        await talk.say("/codex two")
        assert (await talk.view.ended("codex", 2)).text == "You said: two"


async def test_a_lane_that_dies_says_so_once_and_starts_again_with_the_next_task(tmp_path: Path) -> None:
    """Nothing is started by itself."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex one")
        turn = await lanes.given("one")
        turn.text("half a wo")
        turn.die()
        ended = await talk.view.ended("codex")
        assert (ended.status, ended.failure is not None and ended.failure.kind) == ("failed", "engine_lost")
        assert ended.buttons[0].label == "Continue"
        assert talk.view.all(TextDone)[0].text == "half a wo"
        await talk.say("/codex two")
        (await lanes.given("two")).say("back")
        assert (await talk.view.ended("codex", 2)).text == "back"


async def test_events_after_the_end_of_a_turn_change_nothing(tmp_path: Path) -> None:
    """A second end, a text of a turn that is over."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.say("go")
        turn = await lanes.given("go")
        turn.say("done")
        await talk.view.ended("claude")
        lane = lanes.lane("claude")
        lane.tell(TurnDone(turn_id=turn.turn_id, status="failed"))
        lane.tell(Text(turn_id=turn.turn_id, item_id="late", text="late"))
        lane.tell(TurnStarted(turn_id="other", ticket="in-99"))
        await talk.view.receipt(await talk.say("/status"), "done")
        assert len(talk.view.all(TurnEnded)) == 1


async def test_fifty_conversations_at_once_keep_apart(tmp_path: Path) -> None:
    """Each sees its own words, and only those."""
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        talks = [Talk(talk.chat, Place("web", str(number))) for number in range(50)]
        await asyncio.gather(*(each.join() for each in talks))
        await asyncio.gather(*(each.say(f"/codex task {n}") for n, each in enumerate(talks)))
        for number, each in enumerate(talks):
            assert (await each.view.ended("codex")).text == f"You said: task {number}"
            assert len(each.view.all(TurnEnded)) == 1
