"""The changes of a turn on Telegram as an album."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.app.diff_pictures import DiffDrawer
from laneway.rendering.diff_images.drawn import DrawnDiff
from laneway.testing.chat_script import ScriptedLanes
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.bots.support import HandDrawn
from tests.doors.chat.platforms.telegram.scene import scene

ONE = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-one = 1\n+two = 2\n"
THREE = "".join(
    f"--- /dev/null\n+++ b/part{number}.py\n@@ -0,0 +1,40 @@\n" + "+x = 1\n" * 40 for number in range(3)
)


@pytest.mark.covers("003-case.11")
async def test_the_changes_of_a_turn_are_an_album_at_its_end(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes, pictures=DiffDrawer()) as process:
        telegram = place.telegram
        place.ben.write(place.team, "/codex write it")
        turn = await begun(lanes, "codex")
        turn.diff(THREE)
        turn.done("written")
        await telegram.message_with(place.team, "3 files changed")
        await process.settled()
        album = [message for message in telegram.shown(place.team) if message.album]
        assert [message.text for message in album] == ["✏️ 3 files changed (+120 −0)", "", ""]
        assert len({message.album for message in album}) == 1
        assert all(message.now.is_photo and message.is_silent for message in album)
        assert album[0].now.entities[0]["type"] == "bold"
        # Of the sendings of a group's minute, an album takes as many as it has pictures.
        place.ben.write(place.team, "/codex and on")
        again = await begun(lanes, "codex", 2)
        again.say("going on")
        await telegram.message_with(place.team, "going on")
        await process.settled()
        assert (telegram.refused, telegram.limits.told, telegram.limits.broken) == ([], 0, 0)


async def test_a_small_change_is_one_photo(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes, pictures=DiffDrawer()) as process:
        place.ada.write(place.home, "/codex write it")
        turn = await begun(lanes, "codex")
        turn.diff(ONE)
        turn.done("written")
        photo = await place.telegram.message_with(place.home, "1 file changed")
        await process.settled()
        assert (photo.now.is_photo, photo.album, place.telegram.refused) == (True, "", [])


async def test_in_a_group_without_photos_and_files_the_diff_and_the_reason_are_text(tmp_path: Path) -> None:
    """And the group is not taken for one in which nothing may be written."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes, pictures=DiffDrawer()) as process:
        telegram = place.telegram
        for method, what in (("sendPhoto", "photos"), ("sendDocument", "documents")):
            why = f"Bad Request: not enough rights to send {what} to the chat"
            telegram.faults.fail(method, 400, description=why)
        place.ben.write(place.team, "/codex write it")
        turn = await begun(lanes, "codex")
        turn.diff(ONE)
        turn.done("x" * 25_000)
        shown = await telegram.message_with(place.team, "1 file changed")
        assert "+two = 2" in shown.text
        told = await telegram.message_with(place.team, "cannot be shown here")
        assert "not enough rights to send documents" in told.text
        await process.settled()
        assert "CODEX COMPLETED" in telegram.text(place.team)


async def test_pictures_that_telegram_refuses_are_a_file(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    pictures = HandDrawn(DrawnDiff(pictures=(b"no picture", b"at all"), is_whole=True))
    pictures.may_draw.set()
    async with scene(tmp_path) as place, place.running(lanes, pictures=pictures) as process:
        place.ada.write(place.home, "/codex write it")
        turn = await begun(lanes, "codex")
        turn.diff(ONE)
        turn.done("written")
        shown = await place.telegram.message_with(place.home, "1 file changed")
        await process.settled()
        assert place.telegram.world.files[shown.now.file].content.decode() == ONE


async def test_pictures_that_the_next_process_cannot_draw_are_a_file(tmp_path: Path) -> None:
    """Stored for its pictures, sent without them: the extra was removed meanwhile."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place:
        pictures = HandDrawn(DrawnDiff(pictures=(b"1",), is_whole=True))
        async with place.running(lanes, pictures=pictures) as process:
            place.ada.write(place.home, "/codex write it")
            turn = await begun(lanes, "codex")
            turn.diff(ONE)
            turn.done("written")
            await place.telegram.message_with(place.home, "CODEX COMPLETED")
            while not pictures.asked:
                await process.scene.telegram.wait_polled()
        async with place.running(ScriptedLanes()) as process:
            shown = await place.telegram.message_with(place.home, "1 file changed")
            await process.settled()
            file = place.telegram.world.files[shown.now.file]
            assert (file.name, file.content.decode()) == ("changes.diff", ONE)
