"""Conversations are kept for as long as the settings say; whoever opens the store does not wait for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laneway.app.chat_store import DAY_S, open_conversations
from laneway.core.conversations import ConversationRecord
from laneway.doors.chat.messages import Place
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.outputs import Told
from laneway.doors.chat.service import ChatService
from laneway.testing.chat_script import ScriptedLanes
from tests.doors.chat.chats import DEADLINE_S, Talk

NOW = 1000 * DAY_S


def record(conversation_id: str, used_at: float) -> ConversationRecord:
    return ConversationRecord(
        conversation_id=conversation_id, cwd="/", default_lane="claude", created_at=1.0, used_at=used_at
    )


async def kept(
    path: Path, now: float, keep_days: int = 90, add: tuple[ConversationRecord, ...] = ()
) -> set[str]:
    """After one life of a process at this time."""
    async with open_conversations(keep_days, path=path, wall=lambda: now) as opened:
        for each in add:
            opened.store.create(each)
    async with open_conversations(0, path=path) as opened:
        return {each.conversation_id for each in opened.store.latest(10)}


async def test_conversations_go_when_they_were_unused_for_too_many_days(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    old, new = record("old", NOW - 91 * DAY_S), record("new", NOW - 89 * DAY_S)
    assert await kept(path, NOW, keep_days=0, add=(old, new)) == {"old", "new"}
    assert await kept(path, NOW) == {"new"}


async def test_they_are_looked_for_once_a_day(tmp_path: Path) -> None:
    """Also after the clock was set back."""
    path = tmp_path / "laneway.db"
    await kept(path, NOW)
    old = record("old", 1.0)
    assert await kept(path, NOW + DAY_S / 2, keep_days=0, add=(old,)) == {"old"}
    assert await kept(path, NOW + DAY_S / 2) == {"old"}
    assert await kept(path, NOW + DAY_S) == set()
    assert await kept(path, NOW + DAY_S, keep_days=0, add=(old,)) == {"old"}
    assert await kept(path, NOW / 2) == set()


async def test_a_conversation_that_is_open_stays(tmp_path: Path) -> None:
    path = tmp_path / "laneway.db"
    await kept(path, NOW, keep_days=0, add=(record("old", 1.0),))
    async with open_conversations(0, path=path) as opened:
        release = opened.locks.hold("old")
        assert await kept(path, NOW) == {"old"}
        release()
    assert await kept(path, NOW + DAY_S) == set()


@pytest.mark.parametrize("keep_days", [0, 90])
async def test_a_damaged_file_is_told_once_to_whoever_looks_first(tmp_path: Path, keep_days: int) -> None:
    """Whichever has opened it first, the store or the cleaning: earlier conversations are missing."""
    path = tmp_path / "laneway.db"
    path.write_bytes(b"not a database " * 100)
    async with (
        asyncio.timeout(DEADLINE_S),
        open_conversations(keep_days, path=path) as opened,
        ChatService(
            ScriptedLanes(),
            opened.store,
            opened.locks,
            ChatOptions(cwd=tmp_path),
            reports=opened.reports,
        ) as chat,
    ):
        one, two = Talk(chat), Talk(chat, Place("terminal", "two"))
        await one.join()
        told = await one.view.told("is damaged")
        assert told.level == "warning"
        assert ".corrupt-" in told.text
        await two.join()
        await two.say("/status")
        await two.view.told("Nothing runs")
        assert [each for each in two.view.all(Told) if "damaged" in each.text] == []


async def test_a_store_that_cannot_be_cleaned_is_opened_all_the_same(tmp_path: Path) -> None:
    """Whoever uses it is told what is wrong; the cleaning only logs it."""
    path = tmp_path / "laneway.db"
    path.mkdir()
    async with open_conversations(90, path=path, wall=lambda: NOW):
        pass
