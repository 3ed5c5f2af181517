"""What a message does while a lane works: stop it, go into its turn, wait; each with its receipt."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.doors.chat.messages import Place, ReplyTarget
from laneway.doors.chat.outputs import InputReceipt, Told, TurnBegan, TurnEnded
from laneway.lanes.contract import LaneAbilities
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn, echo
from laneway.testing.clock import HandClock
from tests.doors.chat.chats import HERE, Talk, talking


async def accepting(turn: ScriptedTurn) -> None:
    """Record the input, show something, and work on."""
    turn.accept()
    turn.text("working")


async def test_a_message_stops_the_lane_and_goes_where_it_is_meant_to_once_it_has_settled(
    tmp_path: Path,
) -> None:
    """What was stopped is told, with Continue; and its place is taken only when it has ended."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex paint")
        codex = lanes.lane("codex")
        codex.obeys = False
        turn = await codex.begun()
        second = await talk.say("what is the time?")
        await turn.interrupted()
        await talk.view.receipt(second, "queued")
        assert talk.view.begun == [("codex", "paint")]
        turn.done(status="interrupted")
        await talk.view.receipt(second, "begun")
        ended = await talk.view.ended("codex")
        assert (ended.status, ended.stopped_by) == ("interrupted", "message")
        assert [button.label for button in ended.buttons] == ["Continue"]
        assert talk.view.begun[-1] == ("claude", "what is the time?")
        assert (await lanes.lane("claude").begun()).given.context.count(
            "codex, interrupted. Task: paint"
        ) == 1


async def test_continue_goes_on_with_the_turn_that_was_stopped(tmp_path: Path) -> None:
    """In its lane, once; the engine has its input already, so the words are not sent again."""
    lanes = ScriptedLanes(plays={"codex": accepting, "claude": echo})
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex paint")
        await talk.view.wait(TurnBegan)
        await lanes.lane("codex").begun()
        await talk.say("stop that")
        ended = await talk.view.ended("codex")
        await talk.view.ended("claude")
        (button,) = ended.buttons
        assert (await talk.tap(button.data)).is_done
        again = await lanes.lane("codex").begun(2)
        assert again.given.text == "Go on with what you were doing: it was interrupted."
        again.done()
        await talk.view.ended("codex", 2)
        late = await talk.say(button.data)
        assert "continued already" in (await talk.view.receipt(late)).text


async def test_a_turn_whose_input_was_never_recorded_is_continued_with_its_own_words(tmp_path: Path) -> None:
    """Stopped before the engine had it."""
    lanes = ScriptedLanes(plays={"claude": echo})
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex paint it red")
        await lanes.lane("codex").begun()
        await talk.say("stop that")
        (button,) = (await talk.view.ended("codex")).buttons
        await talk.view.ended("claude")
        await talk.tap(button.data)
        assert (await lanes.lane("codex").begun(2)).given.text == "paint it red"


async def test_steer_puts_words_into_the_running_turn(tmp_path: Path) -> None:
    """Plain words go to the lane that works, whichever leads; the turn has one start and one end."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, busy="steer") as talk:
        await talk.say("/codex paint")
        turn = await lanes.lane("codex").begun()
        more = await talk.say("in red")
        assert (await turn.steered()).text == "in red"
        assert (await talk.view.receipt(more)).kind == "steered"
        turn.done()
        await talk.view.ended("codex")
        assert len(talk.view.all(TurnBegan)) == 1


async def test_words_that_a_lane_cannot_take_wait_for_a_turn_of_their_own(tmp_path: Path) -> None:
    """Where it says so before, where it says so only then, and for a command of its engine."""
    lanes = ScriptedLanes(play=accepting, abilities={"codex": LaneAbilities()})
    async with talking(tmp_path, lanes, busy="steer") as talk:
        await talk.say("/codex paint")
        turn = await lanes.lane("codex").begun()
        deaf = await talk.say("in red")
        assert (await talk.view.receipt(deaf)).kind == "queued"
        turn.done()
        second = await lanes.lane("codex").begun(2)
        assert second.given.text == "in red"
        second.done()
        await talk.say("think")
        turn = await lanes.lane("claude").begun()
        lanes.lane("claude").takes_steers = False
        late = await talk.say("harder")
        assert (await talk.view.receipt(late)).kind == "queued"
        turn.done()
        assert (await lanes.lane("claude").begun(2)).given.text == "harder"


async def test_queue_lets_everything_wait_in_order(tmp_path: Path) -> None:
    """With its position; plain words are for the lane that works."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, busy="queue") as talk:
        await talk.say("/codex one")
        turn = await lanes.lane("codex").begun()
        ids = [await talk.say(text) for text in ("two", "/claude three", "four")]
        receipts = [await talk.view.receipt(input_id) for input_id in ids]
        assert [(each.kind, each.position, each.lane) for each in receipts] == [
            ("queued", 1, "codex"),
            ("queued", 2, "claude"),
            ("queued", 3, "codex"),
        ]
        turn.done()
        for text in ("two", "three", "four"):
            (await lanes.given(text)).done()
        assert talk.view.begun == [("codex", "one"), ("codex", "two"), ("claude", "three"), ("codex", "four")]


async def test_the_65th_message_that_waits_is_refused_aloud(tmp_path: Path) -> None:
    """And nothing of the others is lost."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, busy="queue") as talk:
        await talk.say("one")
        for number in range(64):
            await talk.say(f"later {number}")
        refused = await talk.view.receipt(await talk.say("too much"))
        assert refused.kind == "refused"
        assert "64 messages wait already" in refused.text
        assert len(talk.view.all(InputReceipt)) == 66


async def test_words_on_their_way_into_a_turn_count_among_those_that_wait(tmp_path: Path) -> None:
    """A lane that takes long to begin must not gather messages without end."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, busy="steer") as talk:
        await talk.say("one")
        await lanes.lane("claude").begun()
        lanes.lane("claude").answers_steers.clear()
        steered = [await talk.say(f"more {number}") for number in range(65)]
        refused = await talk.view.receipt(steered[-1])
        assert (refused.kind, refused.text[:24]) == ("refused", "64 messages wait already")
        lanes.lane("claude").answers_steers.set()
        assert (await talk.view.receipt(steered[0])).kind == "steered"


@pytest.mark.parametrize("busy", ["interrupt", "queue", "steer"])
async def test_steer_and_queue_decide_for_one_message_whatever_the_setting(busy: str, tmp_path: Path) -> None:
    """Both with the lane that works, or with one that is named."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, busy=busy) as talk:
        await talk.say("/codex paint")
        turn = await lanes.lane("codex").begun()
        assert (await talk.view.receipt(await talk.say("/steer in red"))).kind == "steered"
        assert turn.steers[0].text == "in red"
        assert (await talk.view.receipt(await talk.say("/queue then dry it"))).lane == "codex"
        named = await talk.view.receipt(await talk.say("/queue /claude look"))
        assert (named.kind, named.position, named.lane) == ("queued", 2, "claude")
        assert not turn.is_interrupted
        usage = await talk.view.receipt(await talk.say("/steer"))
        assert usage.text == "Usage: /steer WORDS"
        assert (await talk.view.receipt(await talk.say("/queue /stop"))).kind == "refused"


async def test_a_reply_to_the_lane_that_works_steers_it(tmp_path: Path) -> None:
    """A reply to another lane is a message for that one."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex paint")
        turn = await lanes.lane("codex").begun()
        ticket = talk.view.all(TurnBegan)[0].ticket
        more = await talk.say("in red", reply=ReplyTarget(lane="codex", ticket=ticket))
        assert (await talk.view.receipt(more)).kind == "steered"
        assert turn.steers[0].text == "in red"
        await talk.say("and you?", reply=ReplyTarget(lane="claude"))
        await turn.interrupted()
        assert (await lanes.lane("claude").begun()).given.text == "and you?"


async def test_stop_ends_all_turns_drops_the_queue_and_lists_it(tmp_path: Path) -> None:
    """The lanes stay open, and the next message starts at once."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("one")
        turn = await lanes.lane("claude").begun()
        second = await talk.say("/queue two")
        third = await talk.say("/queue /codex three")
        await talk.say("/stop")
        ended = await talk.view.ended("claude")
        assert ended.stopped_by == "stop"
        assert turn.is_interrupted
        listed = await talk.view.told("were dropped")
        assert "/queue two" in listed.text
        assert "/queue /codex three" in listed.text
        assert talk.view.receipts(second)[-1] == talk.view.receipts(third)[-1] == "refused"
        await talk.say("four")
        await lanes.lane("claude").begun(2)
        assert not lanes.lane("claude").is_closed
        assert len(talk.view.all(TurnBegan)) == 2


async def test_stop_with_nothing_to_stop_says_so(tmp_path: Path) -> None:
    """Only where it was said."""
    async with talking(tmp_path, ScriptedLanes()) as talk:
        await talk.say("/stop")
        assert (await talk.view.told("Nothing is running")).only == HERE


async def test_a_lane_that_does_not_stop_is_given_up_after_ten_seconds(tmp_path: Path) -> None:
    """What it tells later counts no more; the next task starts it again, and goes on with its thread."""
    clock = HandClock()
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, clock=clock) as talk:
        await talk.say("/codex paint")
        codex = lanes.lane("codex")
        codex.obeys = False
        turn = await codex.begun()
        await talk.say("/stop")
        await turn.interrupted()
        clock.advance(10)
        assert not talk.view.all(TurnEnded)
        clock.advance(0.3)
        ended = await talk.view.ended("codex")
        assert ended.status == "interrupted"
        assert ended.failure is not None
        assert "The next /codex starts it again." in ended.failure.message
        turn.text("still here")
        turn.done("late")
        await codex.closed()
        await talk.say("/codex again")
        await lanes.given("again")
        second = lanes.lane("codex")
        assert second is not codex
        assert second.resumed == "codex-thread"
        assert len(talk.view.all(TurnEnded)) == 1


async def test_quit_stops_every_lane_and_the_next_message_starts_what_it_needs(tmp_path: Path) -> None:
    """What waited is dropped and told; the threads go on."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("one")
        await lanes.lane("claude").begun()
        await talk.say("/queue two")
        await talk.say("/quit")
        await talk.view.told("Every lane is stopped")
        await lanes.lane("claude").closed()
        assert (await talk.view.ended("claude")).stopped_by == "quit"
        assert "/queue two" in (await talk.view.told("were dropped")).text
        await talk.say("three")
        await lanes.given("three")
        assert lanes.lane("claude").resumed == "claude-thread"
        assert len([each for each in talk.view.all(Told) if "dropped" in each.text]) == 1


async def test_conversations_of_two_places_run_side_by_side(tmp_path: Path) -> None:
    """A stop in one is nothing to the other."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        other = Talk(talk.chat, Place("web", "two"))
        await other.join()
        await talk.say("/codex one")
        await other.say("/codex two")
        first, second = await lanes.given("one"), await lanes.given("two")
        await talk.say("/stop")
        await talk.view.ended("codex")
        assert (first.is_interrupted, second.is_interrupted) == (True, False)
        second.say("done")
        assert (await other.view.ended("codex")).text == "done"
