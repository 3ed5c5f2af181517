"""Conversations on Discord, as people see them: threads, words that stream, questions, commands."""

from __future__ import annotations

from pathlib import Path

from laneway.testing.chat_script import ScriptedLanes
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.discord.scene import scene


async def test_a_mention_opens_a_thread_in_which_words_stream(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        discord = place.discord
        asked = await place.ada.write(place.general, f"{place.mention} fix the tests")
        await discord.until(lambda: bool(discord.threads(place.general)))
        thread = discord.threads(place.general)[0]
        assert (thread.channel_id, thread.name) == (asked.message_id, "fix the tests")
        turn = await begun(lanes)
        assert turn.given.text == "fix the tests"
        turn.text("I look ")
        first = await discord.message_with(thread, "I look")
        turn.text("and fix.")
        await discord.until(lambda: "and fix." in first.content)
        assert [each["label"] for each in first.buttons] == ["⏹ Stop"]
        turn.done("I look and fix.")
        await discord.until(lambda: not first.buttons)
        await process.settled()
        assert first.content == "I look and fix."
        assert len(first.versions) >= 2
        assert [emoji for emoji, users in asked.reactions.items() if users] == ["👀"]
        assert discord.refused == []
