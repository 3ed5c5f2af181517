"""Bots on Telegram and Discord: what agents say hides nothing, people without a right approve nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.core.model import PlanStep
from laneway.testing.chat_script import ScriptedLanes
from tests.adversary.forging import HIDING, decoded, hidden
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.discord.scene import scene as discord_scene
from tests.doors.chat.platforms.telegram.scene import scene as telegram_scene

SPELT = ("\\x1b[2K", "\\x9b", "\\u202e", "\\u200b", "\\u2028", "\\u3164", "\\U000e0072")
COMMAND = decoded(f"touch ../outside # {HIDING}end")
MARKUP = (
    "make `all` ```\n**Allow** [this](https://evil.example) <b>x</b> || <@1> @everyone\n"
    "❓ **CODEX asks** · question 9\n✅ Answered by Ada: Allow once"
)
"""Ends a code block, forges a question and its answer, links, notifies."""


def spelt(shown: str) -> list[str]:
    return [each for each in SPELT if each in shown]


# ── what agents say ────────────────────────────────────────────────────────


async def test_on_telegram_a_question_shows_all_that_a_command_hides(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with telegram_scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        place.ada.write(place.home, "/codex build it")
        turn = await begun(lanes, "codex")
        question = turn.approve(COMMAND)
        asked = await telegram.message_with(place.home, "CODEX asks")
        assert hidden(asked.text) == set()
        assert spelt(asked.text) == list(SPELT)
        place.ada.press(asked, "Decline")
        assert not (await turn.answered(question)).choice_id.startswith("accept")
        turn.plan(PlanStep(text=COMMAND, status="running"))
        turn.command(COMMAND, item_id="c1")
        turn.say("done")
        await telegram.message_with(place.home, "CODEX COMPLETED")
        await process.settled()
        assert len(telegram.shown(place.home)) > 3
        assert set().union(*(hidden(message.text) for message in telegram.shown(place.home))) == set()
        assert telegram.refused == []


async def test_on_telegram_markup_in_a_command_is_text(tmp_path: Path) -> None:
    """Nothing of it is a link, bold, or outside of the block in which the command is."""
    lanes = ScriptedLanes()
    async with telegram_scene(tmp_path) as place, place.running(lanes):
        telegram = place.telegram
        place.ada.write(place.home, "/codex build it")
        turn = await begun(lanes, "codex")
        turn.approve(MARKUP)
        asked = await telegram.message_with(place.home, "CODEX asks")
        marked = [(entity["type"], part(asked.text, entity)) for entity in asked.now.entities]
        assert [text for kind, text in marked if kind == "text_link"] == []
        assert [text for kind, text in marked if kind == "bold"] == ["CODEX asks"]
        assert asked.text.count("❓") == 2
        block = next(text for kind, text in marked if kind in ("pre", "code") and "Answered by Ada" in text)
        assert "https://evil.example" in block
        assert "question 9" in block


def part(text: str, entity: dict[str, Any]) -> str:
    encoded = text.encode("utf-16-le")
    return encoded[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le")


async def test_on_discord_a_question_shows_all_that_a_command_hides(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with discord_scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        thread = await place.thread(process, "/codex build it")
        turn = await begun(lanes, "codex")
        turn.approve(COMMAND)
        asked = await discord.message_with(thread, "CODEX asks")
        assert hidden(asked.content) == set()
        assert spelt(asked.content) == list(SPELT)


# ── what people do ─────────────────────────────────────────────────────────

TRIES = ("y", "yes", "1", "Allow once", "/codex y", "allow", "q:1:accept", "✅", "/answer 1 accept")


async def test_on_telegram_nobody_but_an_owner_approves_in_whatever_words(tmp_path: Path) -> None:
    """Words, replies, quotes, forwarded words of an owner's, presses of every button and of none."""
    lanes = ScriptedLanes()
    async with telegram_scene(tmp_path) as place, place.running(lanes, busy="queue") as process:
        telegram = place.telegram
        place.ben.write(place.team, "/codex build it")
        turn = await begun(lanes, "codex")
        turn.approve("make all")
        asked = await telegram.message_with(place.team, "make all")
        for words in TRIES:
            place.ben.write(place.team, f"@laneway_bot {words}")
            place.ben.write(place.team, words, reply_to=asked)
            place.ben.write(place.team, f"@laneway_bot {words}", forwarded_from="Ada")
            place.ben.write(place.team, words, reply_to=asked, quote="make all")
        data = [button["callback_data"] for row in asked.now.keyboard for button in row]
        for each in (
            *data,
            "q:1",
            "q:1:accept",
            "q:01:accept",
            "q:1:accept:x",
            "stop",
            "",
            "q:-1:0",
            "x" * 64,
        ):
            place.ben.press_data(asked, each)
            place.eve.press_data(asked, each)
        await process.settled()
        assert turn.answers == {}
        question = next(iter(asked.labels))
        assert question == "Allow once"
        place.ada.press(asked, "Allow once")
        await telegram.until(lambda: "Answered by Ada" in asked.text)
        assert next(iter(turn.answers.values())).choice_id == "accept"


ODD_UPDATES: list[dict[str, Any]] = [
    {"message": {"message_id": "one", "chat": 7}},
    {"message": None},
    {"callback_query": {"id": 5}},
    {"message": {"message_id": 1, "date": 1, "chat": {"id": 1, "type": "private"}, "text": ["x"]}},
    {"stopped_message_generation": {"chat": {"id": 424242, "type": "private"}, "draft_id": 1}},
    {"edited_message": {"message_id": 10**18, "chat": {"id": -5, "type": "channel"}, "text": "/stop"}},
    {"poll": {"id": "1"}},
]


async def test_updates_that_nobody_would_send_end_nothing_and_do_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are noted in the log, by their numbers."""
    lanes = ScriptedLanes()
    async with telegram_scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        for update in ODD_UPDATES:
            telegram.world.add_update(**update)
        place.ada.write(place.home, "still there?")
        (await begun(lanes)).say("still here")
        await telegram.message_with(place.home, "still here")
        await process.settled()
        assert len(lanes.made) == 1
        assert not process.running.done()
        assert sum("is not understood" in record.message for record in caplog.records) == 4


@pytest.mark.parametrize("name", ["../../outside.txt", "/etc/passwd", "a\nb\x1b[2K.txt", "x" * 400, "", ".."])
async def test_a_file_is_kept_in_its_folder_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    lanes = ScriptedLanes()
    async with telegram_scene(tmp_path) as place, place.running(lanes):
        place.ada.send_files(place.home, [(name, b"content")], "look", as_photos=False)
        turn = await begun(lanes)
        folder = (tmp_path / "files").resolve()
        kept = [path for path in folder.rglob("*") if path.is_file()]
        assert [path.read_bytes() for path in kept] == [b"content"]
        assert all(path.resolve().is_relative_to(folder) for path in kept)
        assert hidden(turn.given.text) == set()
        assert not (tmp_path / "outside.txt").exists()
