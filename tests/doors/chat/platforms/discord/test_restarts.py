"""Restarts of Laneway on Discord: what came meanwhile, what waited, what was asked, what was being sent."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.doors.chat.platforms.bots.place_views import STALE
from laneway.doors.chat.platforms.discord.intake import MAX_MISSED
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.chat_script import ScriptedLanes, echo
from laneway.testing.fake_discord import DiscordMessage
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.discord.scene import Scene, scene

SEND = "POST /channels/{channel}/messages"
HISTORY = "GET /channels/{channel}/messages"
DAY_S = 24 * 3600


@asynccontextmanager
async def killed_at_the_end(place: Scene) -> AsyncIterator[None]:
    """A process of Laneway that ends with SIGKILL."""
    discord = place.discord
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.doors.chat.platforms.discord.child",
        str(place.folder),
        discord.api_url,
        discord.gateway_url,
        discord.token,
        place.ada.user_id,
        place.general.channel_id,
    )
    try:
        await discord.wait_ready()
        await discord.until(lambda: bool(discord.world.commands))
        yield
    finally:
        process.kill()
        await process.wait()
        discord.gateway.forget_sessions()


def texts(lanes: ScriptedLanes) -> list[str]:
    return [turn.given.text for lane in lanes.made for turn in lane.turns]


# ── what came meanwhile ────────────────────────────────────────────────────


async def test_messages_that_came_while_it_was_down_are_taken_in_order(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        discord = place.discord
        async with place.running(ScriptedLanes(play=echo)) as process:
            thread = await place.thread(process, "one")
            await discord.message_with(thread, "You said: one")
            await process.settled()
            private = discord.dm(place.ben)
            await place.ben.write(private, "mine")
            await discord.message_with(private, "You said: mine")
        await place.ada.write(thread, "two")
        await place.eve.write(thread, "an intruder's")
        await place.ada.write(thread, "three")
        await place.ada.write(place.general, "not for the bot")
        await place.ada.write(place.general, f"{place.mention} a new one")
        await place.ben.write(private, "and mine")
        lanes = ScriptedLanes(play=echo)
        async with place.running(lanes, busy="queue") as process:
            await discord.message_with(thread, "You said: three")
            new = await discord.thread_in(place.general, 2)
            await discord.message_with(new, "You said: a new one")
            await discord.message_with(private, "You said: and mine")
            await process.settled()
            said = texts(lanes)
            assert sorted(said) == ["a new one", "and mine", "three", "two"]
            assert said.index("two") < said.index("three")
            assert len(place.told) == 1
            assert place.eve.user_id in place.told[0]


async def test_what_comes_at_once_after_the_start_does_not_overtake_what_was_missed(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        discord = place.discord
        async with place.running(ScriptedLanes(play=echo)) as process:
            thread = await place.thread(process, "one")
            await discord.message_with(thread, "You said: one")
            await process.settled()
        await place.ada.write(thread, "missed")
        lanes = ScriptedLanes(play=echo)
        held = discord.faults.hold(HISTORY)
        async with place.running(lanes, busy="queue"):
            await held.reached.wait()
            await place.ada.write(thread, "new")
            held.release.set()
            await discord.message_with(thread, "You said: new")
            assert texts(lanes) == ["missed", "new"]


async def test_of_what_was_missed_the_last_fifty_are_taken_and_the_channel_is_told(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        discord = place.discord
        async with place.running(ScriptedLanes(play=echo)) as process:
            thread = await place.thread(process, "one")
            await discord.message_with(thread, "You said: one")
            await process.settled()
        for number in range(MAX_MISSED + 5):
            await place.ada.write(thread, f"missed {number}")
        lanes = ScriptedLanes(play=echo)
        async with place.running(lanes, busy="queue", catch_up_s=DAY_S):
            told = await discord.message_with(thread, "While I was away")
            assert str(MAX_MISSED) in told.content
            await discord.until(lambda: len(texts(lanes)) == MAX_MISSED)
            assert texts(lanes) == [f"missed {number}" for number in range(5, MAX_MISSED + 5)]


async def test_what_is_older_than_a_day_is_left_alone(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        discord = place.discord
        async with place.running(ScriptedLanes(play=echo)) as process:
            thread = await place.thread(process, "one")
            await discord.message_with(thread, "You said: one")
            await process.settled()
        process.store.set_cursor(f"discord:read:{thread.channel_id}", "1")  # nothing of it was read
        await place.ada.write(thread, "two days old", at=time.time() - 2 * DAY_S)
        await place.ada.write(thread, "of today")
        lanes = ScriptedLanes(play=echo)
        async with place.running(lanes):
            await discord.message_with(thread, "You said: of today")
            assert texts(lanes) == ["of today"]


@pytest.mark.parametrize("status", [0, 403, 429])
async def test_a_history_that_cannot_be_read_ends_nothing(tmp_path: Path, status: int) -> None:
    async with scene(tmp_path) as place:
        discord = place.discord
        async with place.running(ScriptedLanes(play=echo)) as process:
            thread = await place.thread(process, "one")
            await discord.message_with(thread, "You said: one")
            await process.settled()
        discord.faults.fail(HISTORY, status, times=1)
        lanes = ScriptedLanes(play=echo)
        async with place.running(lanes):
            await place.ada.write(thread, "two")
            await discord.message_with(thread, "You said: two")


# ── deaths ─────────────────────────────────────────────────────────────────


async def test_killed_in_the_middle_of_a_send_the_message_is_shown_once(tmp_path: Path) -> None:
    """Discord has it already; the answer reaches nobody."""
    async with scene(tmp_path) as place:
        discord = place.discord
        async with killed_at_the_end(place):
            held = discord.faults.hold(SEND)
            await place.ada.write(place.general, f"{place.mention} hello")
            await held.reached.wait()
            await stored(place)
        thread = discord.threads(place.general)[0]
        async with place.running() as process:
            await discord.until(lambda: len([each for each in discord.calls if each.route == SEND]) >= 2)
            await process.settled()
            assert [each.content for each in discord.shown(thread)] == ["You said: hello"]
            assert process.store.deliveries(f"discord:{place.general.channel_id}:{thread.channel_id}") == []
        held.release.set()


async def test_killed_before_discord_has_a_message_it_is_sent_by_the_next_process(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        discord = place.discord
        async with killed_at_the_end(place):
            discord.faults.cut(SEND, times=1000)
            await place.ada.write(place.general, f"{place.mention} hello")
            await discord.until(lambda: bool(discord.threads(place.general)))
            await called(place, SEND, 1)
            await stored(place)
        discord.faults.clear()
        thread = discord.threads(place.general)[0]
        async with place.running() as process:
            await discord.message_with(thread, "You said: hello")
            await process.settled()
            assert [each.content for each in discord.shown(thread)] == ["You said: hello"]


async def stored(place: Scene) -> None:
    """Wait until the child has stored the end of its turn, and what it posts of it."""
    with Database(place.folder / "laneway.db") as database:
        store = StoredConversations(database, ConversationLockFiles(place.folder / "conversations"))
        thread = place.discord.threads(place.general)[0]
        key = f"discord:{place.general.channel_id}:{thread.channel_id}"
        while not store.deliveries(key) or not store.inputs(str(store.place(key)), ("done",)):
            await asyncio.sleep(0.005)


async def called(place: Scene, route: str, times: int) -> None:
    while len([each for each in place.discord.calls if each.route == route]) < times:
        await asyncio.sleep(0.005)


async def test_after_a_death_an_open_question_is_void_and_its_buttons_are_gone(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        discord = place.discord
        async with killed_at_the_end(place):
            await place.ada.write(place.general, f"{place.mention} ask")
            thread = await discord.thread_in(place.general)
            asked = await discord.message_with(thread, "make install")
            data = asked.buttons[0]["custom_id"]
            waiting = await place.ada.write(thread, "/queue after that")
            await discord.until(lambda: bool(waiting.reactions))
        lanes = ScriptedLanes(play=echo)
        async with place.running(lanes) as process:
            await discord.until(lambda: not asked.buttons)
            assert "the program that asked has ended" in asked.content.lower()
            assert (await (await place.ada.press_id(asked, data)).told()).endswith(STALE[-10:])
            await discord.message_with(thread, "You said: after that")
            cut = await discord.message_with(thread, "Laneway ended in the middle of this turn")
            assert labels(cut) == ["Continue"]
            await process.settled()
            assert texts(lanes) == ["after that"]


async def test_after_a_death_a_turn_that_was_cut_is_told_and_goes_on_by_its_button(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        discord = place.discord
        async with killed_at_the_end(place):
            await place.ada.write(place.general, f"{place.mention} work")
            thread = await discord.thread_in(place.general)
            await discord.message_with(thread, "I begin to work.")
        lanes = ScriptedLanes()
        async with place.running(lanes):
            await discord.until(lambda: any("Continue" in labels(each) for each in discord.shown(thread)))
            cut = next(each for each in discord.shown(thread) if "Continue" in labels(each))
            tapped = await (await place.ada.press(cut, "Continue")).answered()
            assert not tapped.is_late
            turn = await begun(lanes)
            turn.say("and so on")
            await discord.message_with(thread, "and so on")


def labels(message: DiscordMessage) -> list[str]:
    return [each["label"] for each in message.buttons]
