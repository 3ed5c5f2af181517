"""Buttons, dialogs and slash commands on Discord: answered in time, also after a restart, also when stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.core.model import Choice, Field, Question
from laneway.doors.chat.platforms.bots.place_views import STALE
from laneway.doors.chat.platforms.discord.interactions import FAILED, NO_FORM, NOT_HERE
from laneway.testing.chat_script import ScriptedLanes, echo
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.discord.scene import scene

YES = Choice(choice_id="accept", label="Allow once", grants="once")
NO = Choice(choice_id="decline", label="Decline", grants="nothing", takes_words=True)


async def test_a_slash_command_begins_a_conversation_with_a_lane(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes):
        discord = place.discord
        started = await (await place.ada.command(place.general, "codex", text="fix *this*")).answered()
        assert started.text == "› /codex fix \\*this\\*"
        turn = await begun(lanes, "codex")
        assert turn.given.text == "fix *this*"
        thread = discord.threads(place.general)[0]
        assert thread.channel_id == started.responses[0].message_id
        assert thread.name == "/codex fix *this*"
        turn.say("fixed")
        banner = await discord.message_with(thread, "STARTED")
        assert "**CODEX STARTED**" in banner.content
        assert (discord.unanswered, discord.refused) == ([], [])


async def test_a_command_that_makes_no_sense_is_answered_and_ends_nothing(tmp_path: Path) -> None:
    lanes = ScriptedLanes(play=echo)
    async with scene(tmp_path) as place, place.running(lanes) as process:
        thread = await place.thread(process, "one")
        odd = await place.ada.odd_command(thread, {"id": "1", "type": 1})
        assert await odd.told() == FAILED
        await place.ada.write(thread, "two")
        await place.discord.message_with(thread, "You said: two")
        assert place.discord.unanswered == []


CALLBACK = "POST /interactions/{interaction}/{token}/callback"


@pytest.mark.parametrize("takes_effect", [False, True])
async def test_a_first_answer_that_gets_lost_is_given_again_in_time(
    tmp_path: Path, takes_effect: bool
) -> None:
    """Once: if Discord had it, the conversation begins at the message that it has made."""
    lanes = ScriptedLanes(play=echo)
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        discord.faults.cut(CALLBACK, takes_effect=takes_effect)
        started = await (await place.ada.command(place.general, "codex", text="fix it")).answered()
        await discord.until(lambda: bool(discord.threads(place.general)))
        (thread,) = discord.threads(place.general)
        await discord.message_with(thread, "You said: fix it")
        assert thread.channel_id == started.responses[0].message_id
        discord.faults.cut(CALLBACK, takes_effect=takes_effect)
        stopped = await (await place.ada.command(thread, "stop")).answered()
        await process.settled()
        assert [started.is_late, stopped.is_late] == [False, False]
        assert discord.unanswered == []


async def test_a_slash_command_without_its_task_shows_the_usage(tmp_path: Path) -> None:
    async with scene(tmp_path) as place, place.running() as process:
        thread = await place.thread(process, "/lanes")
        await place.ada.command(thread, "codex")
        await place.discord.message_with(thread, "Usage: /codex <task>")


async def test_a_control_command_outside_of_a_thread_says_where_conversations_are(tmp_path: Path) -> None:
    async with scene(tmp_path) as place, place.running():
        told = await (await place.ada.command(place.general, "stop")).told()
        assert told == NOT_HERE
        assert place.discord.shown(place.general) == []
        assert place.discord.threads(place.general) == []


async def test_a_code_that_links_a_place_is_not_repeated_for_everybody(tmp_path: Path) -> None:
    async with scene(tmp_path) as place, place.running() as process:
        thread = await place.thread(process, "/lanes")
        joined = await (await place.ada.command(thread, "join", text="WRONG-CODE")).answered()
        assert joined.text == "› /join"
        await process.settled()
        assert "WRONG-CODE" not in place.discord.text(thread)


async def test_an_answer_goes_out_before_anything_that_takes_long(tmp_path: Path) -> None:
    """Its message is still being sent, and the tap of another one is answered at once."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        question = turn.approve("make test")
        asked = await discord.message_with(thread, "make test")
        held = discord.faults.hold("PATCH /channels/{channel}/messages/{message}")
        tapped = await (await place.ada.press(asked, "Allow once")).answered()
        await held.reached.wait()
        assert (await turn.answered(question)).choice_id == "accept"
        status = await (await place.ada.command(thread, "status")).answered()
        assert not tapped.is_late
        assert not status.is_late
        held.release.set()
        await process.settled()
        assert discord.unanswered == []


async def test_a_no_takes_words_in_a_dialog(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        question = turn.ask(
            Question(
                question_id="clean?",
                kind="command",
                thread_id="",
                turn_id=turn.turn_id,
                item_id=None,
                message="Run make clean?",
                command="make clean",
                choices=(YES, NO),
            )
        )
        asked = await discord.message_with(thread, "make clean")
        opened = await (await place.ada.press(asked, "Decline and say why …")).answered()
        assert opened.modal is not None
        sent = await place.ada.submit(opened, words="use make test instead")
        answer = await turn.answered(question)
        assert answer.choice_id == "decline"
        assert "use make test instead" in str(answer)
        assert not (await sent.answered()).is_late
        await discord.until(lambda: "Declined by ada" in asked.content)
        assert asked.buttons == []


async def test_a_question_is_answered_by_a_button_by_own_words_and_by_a_reply(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)

        first = turn.ask_words("Which colour?", ("red", "blue"))
        asked = await discord.message_with(thread, "Which colour?")
        await place.ada.press(asked, "blue")
        assert (await turn.answered(first)).values == {"answer": "blue"}

        second = turn.ask_words("Which animal?", ("cat", "dog"))
        asked = await discord.message_with(thread, "Which animal?")
        opened = await (await place.ada.press(asked, "Answer …")).answered()
        own = [each["label"] for each in (opened.modal or {})["components"]][-1]
        await place.ada.submit(opened, **{own: "an owl"})
        assert "an owl" in str((await turn.answered(second)).values)

        third = turn.ask_words("Which tree?")
        asked = await discord.message_with(thread, "Which tree?")
        await place.ada.write(thread, "the oak", reply_to=asked)
        assert "the oak" in str((await turn.answered(third)).values)
        assert discord.refused == []


async def test_a_stale_button_is_answered_says_why_and_is_removed(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        turn.approve("make test")
        asked = await discord.message_with(thread, "make test")
        data = asked.buttons[0]["custom_id"]
        turn.done("done without it")
        await discord.until(lambda: not asked.buttons)
        # Ada's client still shows them.
        assert await (await place.ada.press_id(asked, data)).told() == STALE
        assert await (await place.ada.press_id(asked, "d|" + data)).told() == STALE
        assert await (await place.ada.press_id(asked, "whatever")).told() == STALE
        foreign = await discord.rest.add(thread, {"content": "old", "components": asked_rows()}, [])
        assert await (await place.ada.press(foreign, "Allow once")).told() == STALE
        await discord.until(lambda: foreign.components == [])
        assert discord.unanswered == []


def asked_rows() -> list[dict[str, object]]:
    """Buttons of a message that is not in the store: of another installation, or forgotten long ago."""
    button = {"type": 2, "style": 3, "label": "Allow once", "custom_id": "q:7:0"}
    return [{"type": 1, "components": [button]}]


async def test_of_two_taps_the_first_counts_and_the_second_is_told_so(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        question = turn.approve("make test")
        asked = await discord.message_with(thread, "make test")
        held = discord.faults.hold("PATCH /channels/{channel}/messages/{message}")
        await place.ada.press(asked, "Allow once")
        assert (await turn.answered(question)).choice_id == "accept"
        second = await place.ada.press(asked, "Decline")
        assert "no answer any more" in await second.told()
        held.release.set()
        await discord.until(lambda: "Answered by ada" in asked.content)


async def test_a_form_that_is_too_long_for_a_dialog_is_answered_by_words(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process)
        turn = await begun(lanes)
        fields = tuple(Field(field_id=f"f{n}", header=f"Field {n}", text=f"Word {n}?") for n in range(6))
        turn.ask(
            Question(
                question_id="form?",
                kind="input",
                thread_id="",
                turn_id=turn.turn_id,
                item_id=None,
                message="Six words",
                choices=(YES, NO),
                fields=fields,
            )
        )
        asked = await discord.message_with(thread, "Word 5?")
        assert await (await place.ada.press(asked, "Answer …")).told() == NO_FORM
