"""Discord's limits and failures: nothing is lost, nothing is sent inside of a wait that was asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laneway.doors.chat.platforms.bots.health import last_health
from laneway.doors.chat.platforms.discord.platform import OFFLINE
from laneway.testing.chat_script import ScriptedLanes, echo
from laneway.testing.fake_discord import DiscordRate
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.discord.scene import scene

SEND = "POST /channels/{channel}/messages"
EDIT = "PATCH /channels/{channel}/messages/{message}"


async def test_a_429_holds_its_channel_and_what_waits_comes_in_order(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        discord.limits.hold_next(SEND, 20.0)
        turn.text("one", "text-1")
        turn.text("two", "text-2")
        turn.text("three", "text-3")
        turn.done("three")
        await discord.message_with(thread, "three")
        assert [each.content for each in discord.shown(thread)] == ["one", "two", "three"]
        await discord.until(lambda: not any(each.buttons for each in discord.shown(thread)))
        await process.settled()
        assert (discord.limits.told, discord.limits.broken) == (1, 0)
        assert process.store.deliveries(f"discord:{place.general.channel_id}:{thread.channel_id}") == []


async def test_a_global_429_holds_everything(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        first, second = await place.thread(process, "a"), await place.thread(process, "b")
        one, two = await begun_all(lanes, 2)
        discord.limits.hold_next(SEND, 20.0, is_global=True)
        one.say("first")
        while not discord.limits.told:
            await asyncio.sleep(0.002)
        two.say("second")
        await discord.message_with(first, "first")
        await discord.message_with(second, "second")
        assert (discord.limits.told, discord.limits.broken) == (1, 0)


async def begun_all(lanes: ScriptedLanes, count: int) -> list:  # type: ignore[type-arg]
    await begun(lanes)
    while len(lanes.made) < count:
        await begun(lanes)
    return [await lane.begun() for lane in lanes.made]


async def test_text_that_streams_stays_within_the_limits(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        for number in range(300):
            turn.text(f"word{number} ")
            if number % 10 == 0:
                await discord.until(lambda: bool(discord.shown(thread)))
        turn.done()
        await discord.message_with(thread, "word299")
        await process.settled()
        assert discord.limits.told == 0
        assert discord.refused == []


@pytest.mark.parametrize("status", [0, 500, 503])
@pytest.mark.parametrize("takes_effect", [False, True])
async def test_a_message_whose_answer_is_lost_is_shown_once(
    tmp_path: Path, status: int, takes_effect: bool
) -> None:
    """Whether Discord has carried it out is not known: the same call again makes no second message."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        discord.faults.fail(SEND, status, times=2, takes_effect=takes_effect)
        turn.say("the answer")
        await discord.message_with(thread, "the answer")
        await process.settled()
        assert [each.content for each in discord.shown(thread)] == ["the answer"]
        assert len([each for each in discord.calls if each.route == SEND]) == 3


async def test_a_message_of_a_person_waits_until_its_thread_can_be_opened(tmp_path: Path) -> None:
    route = "POST /channels/{channel}/messages/{message}/threads"
    lanes = ScriptedLanes(play=echo)
    async with scene(tmp_path) as place, place.running(lanes):
        discord = place.discord
        discord.faults.fail(route, 503)
        discord.faults.cut(route, takes_effect=True)
        discord.limits.hold_next(route, 3.0)
        asked = await place.ada.write(place.general, f"{place.mention} one")
        thread = await discord.thread_in(place.general)
        await discord.message_with(thread, "You said: one")
        assert thread.channel_id == asked.message_id
        assert len(discord.threads(place.general)) == 1
        assert discord.limits.broken == 0


async def test_a_channel_without_the_right_to_open_threads_says_so(tmp_path: Path) -> None:
    async with scene(tmp_path) as place, place.running():
        place.general.rights &= ~(1 << 35)
        await place.ada.write(place.general, f"{place.mention} hello")
        told = await place.discord.message_with(place.general, "Create Public Threads")
        assert told.pings == set()


async def test_an_archived_thread_is_opened_again_for_an_edit(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        turn.text("I begin")
        words = await discord.message_with(thread, "I begin")
        await process.settled()
        await discord.archive(thread)
        turn.text(" and end")
        turn.done()
        await discord.until(lambda: words.content == "I begin and end")
        assert not thread.is_archived


async def test_words_in_an_archived_thread_go_on_with_its_conversation(tmp_path: Path) -> None:
    lanes = ScriptedLanes(play=echo)
    async with scene(tmp_path) as place, place.running(lanes) as process:
        thread = await place.thread(process, "one")
        await place.discord.message_with(thread, "You said: one")
        await process.settled()
        await place.discord.archive(thread)
        await place.ada.write(thread, "two")
        await place.discord.message_with(thread, "You said: two")
        assert len(lanes.made) == 1


@pytest.mark.parametrize("why", ["locked", "deleted"])
async def test_a_thread_that_takes_no_messages_is_told_in_its_channel_once(tmp_path: Path, why: str) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        if why == "locked":
            await discord.archive(thread, locked=True)
        else:
            await discord.delete_thread(thread)
        turn.text("one", "text-1")
        turn.text("two", "text-2")
        turn.say("three")
        told = await discord.message_with(place.general, f"it {'is locked' if why == 'locked' else 'was'}")
        await process.settled()
        assert f"<#{thread.channel_id}>" in told.content
        assert len(discord.shown(place.general)) == 1
        other = await place.thread(process, "again")
        (await begun(lanes)).say("here")
        await discord.message_with(other, "here")


async def test_a_message_that_somebody_deleted_comes_again_with_its_end(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        turn.text("I begin")
        words = await discord.message_with(thread, "I begin")
        await process.settled()
        words.is_deleted = True
        turn.text(" and end")
        turn.done()
        await discord.message_with(thread, "I begin and end")


async def test_a_cut_connection_is_resumed_and_nothing_comes_twice(tmp_path: Path) -> None:
    lanes = ScriptedLanes(play=echo)
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process, "one")
        await discord.message_with(thread, "You said: one")
        await discord.gateway.cut()
        await place.ada.write(thread, "two")
        await discord.message_with(thread, "You said: two")
        await discord.gateway.ask_reconnect()
        await place.ada.write(thread, "three")
        await discord.message_with(thread, "You said: three")
        await process.settled()
        assert [turn.given.text for turn in lanes.lane("claude").turns] == ["one", "two", "three"]
        assert (discord.gateway.identified, discord.gateway.resumed) == (1, 2)
        assert discord.gateway.closed_with == []


async def test_a_connection_that_stays_away_is_told_and_so_is_its_return(tmp_path: Path) -> None:
    """One that is soon back is no news."""
    async with scene(tmp_path) as place, place.running() as process:
        gateway = place.discord.gateway
        ready = "discord: ready as laneway"
        await gateway.cut()
        await place.discord.until(lambda: gateway.resumed == 1)
        assert place.health == [ready]
        gateway.refuses = True
        await gateway.cut()
        while len(place.health) < 2:
            await asyncio.sleep(0.005)
        kept = last_health("discord", process.store)
        assert kept is not None
        assert not kept.is_well
        gateway.refuses = False
        while len(place.health) < 3:
            await asyncio.sleep(0.005)
        assert place.health == [ready, f"discord: {OFFLINE}", ready]


async def test_without_a_network_at_the_start_it_waits_for_one(tmp_path: Path) -> None:
    lanes = ScriptedLanes(play=echo)
    async with scene(tmp_path) as place:
        place.discord.faults.cut("GET /users/@me", times=3)
        async with place.running(lanes) as process:
            thread = await place.thread(process, "hello")
            await place.discord.message_with(thread, "You said: hello")
            assert place.health == [f"discord: {OFFLINE}", "discord: ready as laneway"]


async def test_rates_far_below_discords_only_slow_it_down(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    rates = {SEND: DiscordRate(1, 2.0), EDIT: DiscordRate(1, 3.0)}
    async with scene(tmp_path, rates=rates) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        for number in range(6):
            turn.text(f"text {number}", f"text-{number}")
        turn.done()
        await discord.message_with(thread, "text 5")
        await process.settled()
        assert [each.content for each in discord.shown(thread)] == [f"text {n}" for n in range(6)]
        assert discord.limits.broken == 0


async def test_fifty_threads_at_once_are_all_served_and_no_limit_is_broken(tmp_path: Path) -> None:
    lanes = ScriptedLanes(play=echo)
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        for number in range(50):
            await place.ada.write(place.general, f"{place.mention} task {number}.")
        await discord.until(lambda: len(discord.threads(place.general)) == 50)
        for thread in discord.threads(place.general):
            await discord.message_with(thread, f"You said: {thread.name}")
        await process.settled()
        assert (discord.limits.broken, discord.refused, discord.unanswered) == (0, [], [])
        assert all(len(discord.shown(thread)) == 1 for thread in discord.threads(place.general))


async def test_two_users_in_two_threads_do_not_touch_each_other(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        first = await place.thread(process, "of ada")
        second = await place.thread(process, "of ben", by=place.ben)
        one, two = await begun_all(lanes, 2)
        one.text("for ada")
        two.text("for ben")
        await discord.message_with(first, "for ada")
        await discord.message_with(second, "for ben")
        await place.ben.write(second, "/stop")
        await two.interrupted()
        assert not one.is_interrupted
        one.done()
        await process.settled()
        assert "ben" not in discord.text(first)


async def test_words_that_race_with_the_end_of_a_turn_are_taken_once(tmp_path: Path) -> None:
    """A steer that comes too late becomes a turn of its own."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes, busy="steer") as process:
        discord = place.discord
        thread = await place.thread(process, "one")
        turn = await begun(lanes)
        turn.text("working")
        await discord.message_with(thread, "working")
        await place.ada.write(thread, "and this")
        assert (await turn.steered()).text == "and this"
        lanes.lane("claude").takes_steers = False
        late = await place.ada.write(thread, "and that")
        turn.done("working")
        again = await begun(lanes, count=2)
        assert again.given.text == "and that"
        again.say("done")
        await discord.message_with(thread, "done")
        await process.settled()
        assert len(lanes.lane("claude").turns) == 2
        assert [emoji for emoji, users in late.reactions.items() if users] == ["👀"]


async def test_nothing_that_the_service_refused_was_our_mistake(tmp_path: Path) -> None:
    """Everything that a conversation can show, in one turn."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process, "x" * 1900)
        turn = await begun(lanes)
        turn.thought("hm" * 2000)
        for number in range(20):
            turn.command(f"make {'t' * 300}", item_id=f"c{number}")
        turn.text("| a | b |\n|---|---|\n" + "| `x` | **y** |\n" * 200, "table")
        turn.text("```py\n" + "print('😀')\n" * 1000 + "```\n" + "word " * 4000, "long")
        turn.diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + "-old\n+new\n" * 2000)
        turn.ask_words("?" * 3000, tuple(f"option {n} {'o' * 200}" for n in range(30)))
        await discord.until(lambda: any(each.buttons for each in discord.shown(thread)))
        turn.done()
        await discord.until(lambda: any(each.files for each in discord.shown(thread)))
        await process.settled()
        assert discord.refused == []
        assert len(thread.name) <= 100
