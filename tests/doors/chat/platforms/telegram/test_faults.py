"""Telegram and the network at their worst: nothing that people said is lost, nothing is shown twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laneway.base.errors import UsageError
from laneway.doors.chat.platforms.bots.health import last_health
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from laneway.testing.fake_telegram import BotApiChat, BotApiMessage, FakeTelegram
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.telegram.scene import scene


def times_shown(telegram: FakeTelegram, chat: BotApiChat, words: str) -> int:
    return sum(words in message.text for message in telegram.shown(chat))


async def test_a_429_holds_its_chat_and_a_second_one_all_of_them(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        telegram.limits.hold_next(place.home.chat_id, 7)
        telegram.limits.hold_next(place.bens.chat_id, 5)
        place.ada.write(place.home, "one")
        place.ben.write(place.bens, "two")
        while sum(bool(lane.turns) for lane in lanes.made) < 2:
            await asyncio.sleep(0.002)
        for lane in lanes.made:
            if lane.turns:
                lane.turn.say(f"answer to {lane.turn.given.text}")
        await telegram.message_with(place.home, "answer to one")
        await telegram.message_with(place.bens, "answer to two")
        await process.settled()
        assert (telegram.limits.told, telegram.limits.broken) == (2, 0)
        assert [times_shown(telegram, chat, "answer") for chat in (place.home, place.bens)] == [1, 1]


async def test_a_fast_text_keeps_to_the_rates_of_private_chats_and_groups(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        place.ada.write(place.home, "go")
        place.ada.write(place.team, "@laneway_bot go")
        while sum(bool(lane.turns) for lane in lanes.made) < 2:
            await asyncio.sleep(0.002)
        turns = [lane.turn for lane in lanes.made if lane.turns]
        for number in range(150):
            for turn in turns:
                turn.text(f"word{number} ")
            await asyncio.sleep(0)
            if number % 10 == 0:
                await asyncio.sleep(0.01)
        for turn in turns:
            turn.text("finished")
            turn.done()
        for chat in (place.home, place.team):
            await telegram.message_with(chat, "finished")
        await process.settled()
        assert (telegram.limits.told, telegram.refused) == (0, [])


@pytest.mark.parametrize("fault", [502, 0])
async def test_a_service_that_fails_is_asked_again_until_it_takes_the_message(
    tmp_path: Path, fault: int
) -> None:
    """502: its gateway answers in HTML. 0: the connection ends without an answer."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        telegram.faults.fail("sendMessage", fault, times=3)
        telegram.faults.fail("getUpdates", fault, times=2)
        place.ada.write(place.home, "one")
        (await begun(lanes)).say("the answer")
        await telegram.message_with(place.home, "the answer")
        await process.settled()
        place.ada.write(place.home, "two")
        (await begun(lanes, count=2)).say("another")
        await telegram.message_with(place.home, "another")
        await process.settled()
        assert times_shown(telegram, place.home, "the answer") == 1
        assert "telegram: Telegram cannot be reached. We keep trying." in place.told
        assert place.told[-1] == "telegram: ready as @laneway_bot"


async def test_a_conflict_is_told_and_retried_until_the_other_program_has_ended(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        conflict = "Conflict: terminated by other getUpdates request"
        telegram.faults.fail("getUpdates", 409, times=3, description=conflict)
        place.ada.write(place.home, "one")
        (await begun(lanes)).say("the answer")
        await telegram.message_with(place.home, "the answer")
        await process.settled()
        told = [line for line in place.told if "another program asks for this bot's messages" in line]
        assert len(told) == 1
        assert place.told[-1] == "telegram: ready as @laneway_bot"
        kept = last_health("telegram", process.store)
        assert kept is not None
        assert (kept.is_well, kept.text) == (True, "ready as @laneway_bot")


async def test_a_webhook_is_told_and_health_is_kept_for_the_doctor(tmp_path: Path) -> None:
    async with scene(tmp_path) as place, place.running() as process:
        place.telegram.world.webhook = "https://x.example/hook"
        place.ada.write(place.home, "wake up")
        await place.telegram.until(lambda: len(place.telegram.called("getUpdates")) >= 2)
        while (kept := last_health("telegram", process.store)) is None or kept.is_well:
            await asyncio.sleep(0.002)
        assert "webhook" in kept.text


async def test_a_token_that_is_refused_ends_it_with_a_sentence_and_without_the_token(tmp_path: Path) -> None:
    async with scene(tmp_path) as place:
        wrong = place.telegram.token[:-3] + "xyz"
        with pytest.raises(UsageError, match="@BotFather") as refused:
            async with place.running(token=wrong):
                raise AssertionError("it does not run")
        assert wrong not in str(refused.value)
        async with place.running() as process:
            place.telegram.server.token = wrong
            place.ada.write(place.home, "hi")
            with pytest.raises(UsageError, match="@BotFather"):
                await process.running


async def test_the_offset_moves_only_after_the_input_is_stored(tmp_path: Path) -> None:
    """A death between taking and confirming: the message comes again, and is taken once."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place:
        telegram = place.telegram
        async with place.running(lanes) as process:
            held = telegram.faults.hold("getUpdates")
            place.ada.write(place.home, "only once")
            await held.reached.wait()
            assert len(telegram.world.updates) == 1  # told, and not confirmed
            assert process.store.latest(5) == []
        held.release.set()
        second = ScriptedLanes()
        async with place.running(second) as process:
            turn = await begun(second)
            assert turn.given.text == "only once"
            turn.say("once")
            await telegram.message_with(place.home, "once")
            await process.settled()
            assert telegram.world.updates == []
        third = ScriptedLanes()
        telegram.world.add_update(message=telegram.world.message_json(written(telegram)))
        async with place.running(third) as process:
            await process.settled()
            assert [lane for lane in third.made if lane.turns] == []


def written(telegram: FakeTelegram) -> BotApiMessage:
    return next(each for each in telegram.world.messages.values() if each.sender is not telegram.world.bot)


async def test_after_a_restart_an_open_question_is_void_and_waiting_input_runs(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place:
        telegram = place.telegram
        async with place.running(lanes) as process:
            place.ada.write(place.home, "/codex build")
            (await begun(lanes, "codex")).approve("make all")
            asked = await telegram.message_with(place.home, "make all")
            place.ada.write(place.home, "/queue and then test")
            await process.settled()
        assert asked.labels
        second = ScriptedLanes()
        async with place.running(second) as process:
            await telegram.until(lambda: "needs no answer" in asked.text and not asked.labels)
            tap = place.ada.press_data(asked, "q:1:accept")
            assert "earlier time" in await telegram.answered(tap)
            cut = await telegram.message_with(place.home, "CODEX STOPPED")
            assert cut.labels == ["Continue"]
            while not any(lane.turns for lane in second.made):
                await asyncio.sleep(0.002)
            turn = next(lane.turn for lane in second.made if lane.turns)
            assert turn.given.text == "and then test"
            turn.say("tested")
            await telegram.message_with(place.home, "tested")
            await process.settled()


async def test_a_steer_that_races_with_the_end_of_the_turn_is_answered_either_way(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        for number in range(1, 6):
            place.ada.write(place.home, f"task {number}")
            turn = await begun(lanes, count=2 * number - 1)
            place.ada.write(place.home, f"/steer more {number}")
            await asyncio.sleep(0.001 * number)
            turn.say(f"end {number}")
            await telegram.message_with(place.home, f"end {number}")
            await process.settled()
            if turn.steers:
                place.ada.write(place.home, "next")
            (await begun(lanes, count=2 * number)).say("extra")
            await process.settled()
        assert telegram.refused == []


async def test_two_users_in_one_group_share_its_conversation_and_answer_their_own_questions(
    tmp_path: Path,
) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        place.ben.write(place.team, "@laneway_bot /claude paint it")
        turn = await begun(lanes)
        question_id = turn.ask_words("Which colour?", ["red", "blue"])
        asked = await telegram.message_with(place.team, "Which colour?")
        place.ben.write(place.team, "blue", reply_to=asked)
        answer = await turn.answered(question_id)
        assert "blue" in str(answer)
        turn.say("painted")
        place.ada.write(place.team, "@laneway_bot thanks")
        second = await begun(lanes, count=2)
        second.say("welcome")
        await telegram.message_with(place.team, "welcome")
        await process.settled()


async def test_fifty_chats_at_once_are_all_served_and_no_limit_is_broken(tmp_path: Path) -> None:
    lanes = ScriptedLanes(play=shout)
    async with scene(tmp_path) as place:
        people = [place.telegram.person(f"user{number:02}") for number in range(50)]
        place.guests = frozenset(person.user_id for person in people)
        async with place.running(lanes) as process:
            chats = [place.telegram.private(person) for person in people]
            for person, chat in zip(people, chats, strict=True):
                person.write(chat, f"hello from {person.user_id}")
            for person, chat in zip(people, chats, strict=True):
                await place.telegram.message_with(chat, f"HELLO FROM {person.user_id}")
            await process.settled()
        limits = place.telegram.limits
        assert (limits.broken, place.telegram.refused) == (0, [])
        assert all(len(place.telegram.shown(chat)) == 1 for chat in chats)


async def shout(turn: ScriptedTurn) -> None:
    turn.accept()
    turn.say(turn.given.text.upper())


async def test_a_blocked_bot_gives_up_that_chat_and_serves_the_others(tmp_path: Path) -> None:
    lanes = ScriptedLanes(play=shout)
    async with scene(tmp_path) as place, place.running(lanes) as process:
        place.bens.blocked_by_user = True
        place.ben.write(place.bens, "hello")
        place.ada.write(place.home, "hello")
        await place.telegram.message_with(place.home, "HELLO")
        await process.settled()
        assert place.telegram.shown(place.bens) == []
        key = next(iter(process.store.places(process.store.latest(5)[-1].conversation_id)))
        assert process.store.deliveries(key) == []


async def test_where_telegram_knows_neither_drafts_nor_rich_messages_words_come_nevertheless(
    tmp_path: Path,
) -> None:
    """An older Bot API server of the user's own."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        telegram.faults.fail("sendMessageDraft", 404, description="Not Found: method not found")
        telegram.faults.fail("sendRichMessage", 404, description="Not Found: method not found")
        place.ada.write(place.home, "go")
        turn = await begun(lanes)
        turn.text("grow")
        first = await telegram.message_with(place.home, "grow")
        assert first.labels == ["⏹ Stop"]
        turn.text("ing")
        turn.done()
        await telegram.until(lambda: first.text == "growing" and not first.labels)
        place.ada.write(place.home, "a table")
        (await begun(lanes, count=2)).say("# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
        table = await telegram.message_with(place.home, "│")
        await process.settled()
        assert [entity["type"] for entity in table.now.entities] == ["bold", "pre"]
        assert telegram.drafts(place.home) == []


async def test_entities_that_telegram_refuses_become_plain_text(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        telegram.faults.fail("sendMessage", 400, description="Bad Request: can't parse entities")
        place.ada.write(place.home, "go")
        (await begun(lanes)).say("a **bold** word")
        sent = await telegram.message_with(place.home, "bold")
        await process.settled()
        assert (sent.text, sent.now.entities) == ("a **bold** word", ())
