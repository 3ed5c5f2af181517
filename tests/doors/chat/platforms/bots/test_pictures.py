"""The changes of a turn as pictures: drawn beside everything else, shown at least once, else as text."""

from __future__ import annotations

import asyncio

import pytest

from laneway.doors.chat.outputs import TextDone, Told, TurnEnded
from laneway.rendering.diff_images.drawn import DrawnDiff
from laneway.testing.memory_conversations import MemoryConversations
from laneway.testing.stored_hand_chat import StoredHandChat
from tests.doors.chat.platforms.bots.support import DEADLINE_S, PLACE, BotService, HandDrawn, views_of

DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-one\n+two\n"
ENDED = TurnEnded(lane="codex", ticket="t1", status="completed", has_banner=True, diff=DIFF)
WHOLE = DrawnDiff(pictures=(b"png",), is_whole=True)
SUMMARY = "✏️ **1 file changed** (+1 −1)"


class Drawn:
    """A chat, its store and a service, over restarts."""

    def __init__(self) -> None:
        self.store = MemoryConversations()
        self.chat = StoredHandChat(self.store)
        self.service = BotService()

    @property
    def kinds(self) -> list[str]:
        return [post.kind for post in self.service.messages.values()]


@pytest.mark.covers("003-case.11")
async def test_words_and_the_end_of_a_turn_do_not_wait_for_its_pictures() -> None:
    """Drawing takes a second on a small machine, and nothing may stand still meanwhile."""
    here, pictures = Drawn(), HandDrawn(WHOLE)
    async with (
        asyncio.timeout(DEADLINE_S),
        views_of(here.chat, here.store, here.service, pictures=pictures) as views,
    ):
        view = await views.view_of(PLACE)
        here.chat.show(PLACE, ENDED, Told(text="Next, please."))
        while "Next, please." not in here.service.texts:
            await asyncio.sleep(0.002)
        assert (here.kinds, pictures.asked, view.is_idle) == (["banner", "told"], [DIFF], False)
        pictures.may_draw.set()
        await views.wait_idle()
        assert here.kinds == ["banner", "told", "gallery"]
        assert here.service.texts[-1] == SUMMARY


async def test_a_process_that_ends_while_it_draws_leaves_the_pictures_to_the_next_one() -> None:
    here, first, second = Drawn(), HandDrawn(WHOLE), HandDrawn(WHOLE)
    async with asyncio.timeout(DEADLINE_S):
        async with views_of(here.chat, here.store, here.service, pictures=first) as views:
            await views.view_of(PLACE)
            here.chat.show(PLACE, ENDED)
            while not first.asked:
                await asyncio.sleep(0.002)
        assert "gallery" not in here.kinds
        async with views_of(here.chat, here.store, here.service, pictures=second) as views:
            second.may_draw.set()
            await views.wait_idle()
        assert here.kinds.count("gallery") == 1
        async with views_of(here.chat, here.store, here.service, pictures=second) as views:
            await views.wait_idle()
        assert here.kinds.count("gallery") == 1


async def test_the_file_of_all_changes_is_not_lost_with_the_process_that_drew_them() -> None:
    here, pictures = Drawn(), HandDrawn(DrawnDiff(pictures=(b"1",), is_whole=False))
    pictures.may_draw.set()
    here.service.holds = True
    async with asyncio.timeout(DEADLINE_S):
        async with views_of(here.chat, here.store, here.service, pictures=pictures) as views:
            await views.view_of(PLACE)
            here.chat.show(PLACE, ENDED)
            while not any(key.endswith("+file") for key in stored(here)):
                await asyncio.sleep(0.002)
        assert here.kinds == []
        here.service.holds = False
        async with views_of(here.chat, here.store, here.service, pictures=pictures) as views:
            await views.wait_idle()
        assert sorted(here.kinds) == ["banner", "file", "gallery"]


def stored(here: Drawn) -> list[str]:
    """Keys of what was not sent yet."""
    return [record.key for record in here.store.deliveries(PLACE.key)]


async def test_what_cannot_be_drawn_is_shown_as_text() -> None:
    here, pictures = Drawn(), HandDrawn(DrawnDiff())
    pictures.may_draw.set()
    async with (
        asyncio.timeout(DEADLINE_S),
        views_of(here.chat, here.store, here.service, pictures=pictures) as views,
    ):
        await views.view_of(PLACE)
        here.chat.show(PLACE, ENDED)
        await views.wait_idle()
        assert here.kinds == ["banner", "diff"]
        assert here.service.texts[-1] == f"{SUMMARY}\n```diff\n{DIFF}```"
    async with views_of(here.chat, here.store, here.service, pictures=pictures) as views:
        await views.wait_idle()
    assert here.kinds == ["banner", "diff"]


async def test_pictures_of_a_part_of_the_changes_come_with_a_file_of_all_of_them() -> None:
    here, pictures = Drawn(), HandDrawn(DrawnDiff(pictures=(b"1", b"2"), is_whole=False))
    pictures.may_draw.set()
    async with (
        asyncio.timeout(DEADLINE_S),
        views_of(here.chat, here.store, here.service, pictures=pictures) as views,
    ):
        await views.view_of(PLACE)
        here.chat.show(PLACE, TextDone(lane="codex", ticket="t1", part="p", text="Done."), ENDED)
        await views.wait_idle()
        assert here.kinds == ["text", "banner", "gallery", "file"]
        file = list(here.service.messages.values())[-1]
        assert (file.name, file.body) == ("changes.diff", DIFF)
