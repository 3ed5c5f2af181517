"""The changes of a turn on Discord as pictures of one message."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from laneway.app.diff_pictures import DiffDrawer
from laneway.doors.chat.platforms.discord.writer import NO_FILES
from laneway.rendering.diff_images.drawn import DrawnDiff
from laneway.testing.chat_script import ScriptedLanes
from laneway.testing.fake_discord.world import ATTACH
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.bots.support import HandDrawn
from tests.doors.chat.platforms.discord.scene import scene

DIFF = "".join(
    f"--- /dev/null\n+++ b/part{number}.py\n@@ -0,0 +1,40 @@\n" + "+x = 1\n" * 40 for number in range(3)
)


@pytest.mark.covers("003-case.11")
async def test_the_changes_of_a_turn_are_a_gallery_at_its_end(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes, pictures=DiffDrawer()) as process:
        thread = await place.thread(process, "/codex write it")
        turn = await begun(lanes, "codex")
        turn.diff(DIFF)
        turn.done("written")
        gallery = await place.discord.message_with(thread, "3 files changed")
        await process.settled()
        assert gallery.content == "✏️ **3 files changed** (+120 −0)"
        assert [file.name for file in gallery.files] == ["changes-1.png", "changes-2.png", "changes-3.png"]
        assert [Image.open(io.BytesIO(file.data)).format for file in gallery.files] == ["PNG"] * 3
        assert "```diff" not in place.discord.text(thread)
        assert place.discord.refused == []


async def test_where_files_may_not_be_attached_the_diff_and_the_reason_are_text(tmp_path: Path) -> None:
    """And the thread is not taken for one in which nothing may be written."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes, pictures=DiffDrawer()) as process:
        thread = await place.thread(process, "/codex write it")
        thread.rights &= ~ATTACH
        turn = await begun(lanes, "codex")
        turn.diff(DIFF)
        turn.done("x" * 11_000)
        shown = await place.discord.message_with(thread, "3 files changed")
        await place.discord.message_with(thread, NO_FILES)
        await process.settled()
        assert "```diff\n--- /dev/null\n+++ b/part0.py" in shown.content
        assert "CODEX COMPLETED" in place.discord.text(thread)
        assert place.discord.text(place.general) == ""


async def test_a_gallery_whose_answer_got_lost_is_not_sent_twice(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    pictures = HandDrawn(DrawnDiff(pictures=(b"\x89PNG one",), is_whole=True))
    async with scene(tmp_path) as place, place.running(lanes, pictures=pictures) as process:
        thread = await place.thread(process, "/codex write it")
        turn = await begun(lanes, "codex")
        turn.diff(DIFF)
        turn.done("written")
        await place.discord.message_with(thread, "CODEX COMPLETED")
        assert process.platform.views is not None
        await process.platform.views.outbox.wait_idle()
        place.discord.faults.cut("POST /channels/{channel}/messages", takes_effect=True)
        pictures.may_draw.set()
        await place.discord.message_with(thread, "3 files changed")
        await process.settled()
        shown = [each for each in place.discord.shown(thread) if each.files]
        assert len(shown) == 1
