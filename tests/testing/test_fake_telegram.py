"""The fake Telegram is what aiogram takes for Telegram, and refuses what Telegram refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from laneway.doors.chat.platforms.telegram.entities import entity_text
from laneway.doors.chat.platforms.telegram.rich import rich_message
from laneway.testing.clock import HandClock
from laneway.testing.fake_telegram import BotApiRate, FakeTelegram
from laneway.testing.fake_telegram.checks import FIELDS

if TYPE_CHECKING:
    from aiogram import Bot

DEADLINE_S = 60.0
FREE = BotApiRate(1000, 1.0)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (90).to_bytes(4, "big") + (60).to_bytes(4, "big") + b"\0" * 9
RICH = """\
# Title

| a | b |
|---|---|
| 1 | **2** |

- [x] done
- [ ] [open](https://x.example)

---

> - `q`
"""


@asynccontextmanager
async def bot_at(fake: FakeTelegram) -> AsyncIterator[Bot]:
    """An ordinary bot of aiogram's."""
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    session = AiohttpSession(api=TelegramAPIServer.from_base(fake.api_url))
    bot = Bot(fake.token, session=session)
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield bot
    finally:
        await bot.session.close()


def method_of(name: str) -> Any:
    from aiogram import methods

    return getattr(methods, name[0].upper() + name[1:])


def test_the_parameters_are_those_of_the_service() -> None:
    """As aiogram's generated types know them."""
    for method, fields in FIELDS.items():
        assert fields <= set(method_of(method).model_fields), method


async def test_aiogram_reads_what_is_sent_edited_and_answered() -> None:
    from aiogram.types import BufferedInputFile, InputRichMessage, ReactionTypeEmoji

    async with FakeTelegram(private=FREE) as fake, bot_at(fake) as bot:
        ada = fake.person("ada")
        chat = fake.private(ada)
        assert (await bot.get_me()).username == "laneway_bot"
        written = ada.write(chat, "/codex@laneway_bot fix 🚀 it")
        (update,) = await bot.get_updates(timeout=0)
        assert update.message is not None
        assert update.message.entities is not None
        assert update.message.entities[0].extract_from(update.message.text or "") == "/codex@laneway_bot"
        sent = await bot.send_message(chat.chat_id, "hello", reply_to_message_id=None)
        rich = rich_message(RICH)
        assert rich is not None
        await bot.send_rich_message(chat.chat_id, InputRichMessage.model_validate(rich))
        edited = await bot.edit_message_text("bye", chat_id=chat.chat_id, message_id=sent.message_id)
        assert not isinstance(edited, bool)
        assert edited.text == "bye"
        await bot.send_photo(chat.chat_id, BufferedInputFile(PNG, "a.png"), caption="see")
        document = await bot.send_document(chat.chat_id, BufferedInputFile(b"words", "a.txt"))
        assert document.document is not None
        assert (await bot.download(document.document.file_id)).read() == b"words"  # type: ignore[union-attr]
        await bot.set_message_reaction(chat.chat_id, written.message_id, [ReactionTypeEmoji(emoji="👀")])
        assert await bot.send_message_draft(chat.chat_id, 7, text="growing", can_stop=True)
    album = [message.now.is_photo for message in fake.shown(chat) if message.now.file]
    assert album == [True, False]
    assert fake.refused == []


async def test_aiogram_reads_albums_topics_taps_edits_and_stops() -> None:
    from aiogram.types import BufferedInputFile, InputMediaPhoto

    async with FakeTelegram(private=FREE) as fake, bot_at(fake) as bot:
        ada = fake.person("ada")
        private, forum = fake.private(ada), fake.group("Forum", is_forum=True)
        topic = fake.world.add_topic(forum, "Fixes", ada.user)
        asked = ada.write(forum, "hello @laneway_bot", topic=topic)
        ada.edit(asked, "hello again")
        ada.send_files(private, [("a.jpg", b"1"), ("b.jpg", b"2")], "two")
        media = [InputMediaPhoto(media=BufferedInputFile(PNG, f"{n}.png")) for n in range(2)]
        both = await bot.send_media_group(private.chat_id, list(media))
        assert both[0].media_group_id == both[1].media_group_id is not None
        await bot.send_message_draft(private.chat_id, 7, text="growing", can_stop=True)
        ada.stop(fake.drafts(private)[0])
        updates = await bot.get_updates(timeout=0)
        assert [update.event_type for update in updates] == [
            "message",
            "edited_message",
            "message",
            "message",
            "stopped_message_generation",
        ]
        first = updates[0].message
        assert first is not None
        assert (first.message_thread_id, first.is_topic_message) == (topic, True)
        assert first.reply_to_message is not None
        assert first.reply_to_message.forum_topic_created is not None
        buttons = {"inline_keyboard": [[{"text": "Go", "callback_data": "q:1"}]]}
        sent = await bot.send_message(private.chat_id, "go?", reply_markup=buttons)  # type: ignore[arg-type]
        tap = ada.press(fake.world.messages[private.chat_id, sent.message_id], "Go")
        (update,) = await bot.get_updates(offset=updates[-1].update_id + 1, timeout=0)
        assert update.callback_query is not None
        assert update.callback_query.data == "q:1"
        await bot.answer_callback_query(update.callback_query.id, "Gone", show_alert=True)
        assert (tap.answer, tap.is_alert) == ("Gone", True)


async def test_mistakes_get_the_errors_of_the_service() -> None:
    from aiogram.exceptions import TelegramBadRequest, TelegramForbiddenError, TelegramUnauthorizedError

    async with FakeTelegram(private=FREE) as fake, bot_at(fake) as bot:
        ada = fake.person("ada")
        chat, group = fake.private(ada), fake.group("Team")
        theirs = ada.write(chat, "mine")
        sent = await bot.send_message(chat.chat_id, "one")
        wrong: list[tuple[str, Any]] = [
            ("message is too long", lambda: bot.send_message(chat.chat_id, "🚀" * 2049)),
            ("message text is empty", lambda: bot.send_message(chat.chat_id, "  ")),
            ("chat not found", lambda: bot.send_message(12345, "x")),
            ("thread not found", lambda: bot.send_message(group.chat_id, "x", message_thread_id=77)),
            (
                "not modified",
                lambda: bot.edit_message_text("one", chat_id=chat.chat_id, message_id=sent.message_id),
            ),
            (
                "can't be edited",
                lambda: bot.edit_message_text("x", chat_id=chat.chat_id, message_id=theirs.message_id),
            ),
            ("edit not found", lambda: bot.edit_message_text("x", chat_id=chat.chat_id, message_id=9)),
            ("private chats only", lambda: bot.send_message_draft(group.chat_id, 1, text="x")),
            (
                "BUTTON_DATA_INVALID",
                lambda: bot.send_message(chat.chat_id, "x", reply_markup=button("q" * 65)),
            ),
            (
                "REACTION_INVALID",
                lambda: bot.set_message_reaction(chat.chat_id, theirs.message_id, reaction("🧨")),
            ),
            ("ENTITY_BOUNDS", lambda: bot.send_message(chat.chat_id, "🚀", entities=marks(1, 1))),
            ("ENTITY_BOUNDS", lambda: bot.send_message(chat.chat_id, "ab", entities=marks(1, 5))),
            ("query is too old", lambda: bot.answer_callback_query("5")),
        ]
        for words, call in wrong:
            with pytest.raises(TelegramBadRequest, match=words):
                await call()
        chat.blocked_by_user = True
        with pytest.raises(TelegramForbiddenError, match="blocked"):
            await bot.send_message(chat.chat_id, "x")
        fake.server.token = "1:other"
        with pytest.raises(TelegramUnauthorizedError):
            await bot.get_me()


def button(data: str) -> Any:
    return {"inline_keyboard": [[{"text": "x", "callback_data": data}]]}


def reaction(emoji: str) -> Any:
    return [{"type": "emoji", "emoji": emoji}]


def marks(offset: int, length: int) -> Any:
    return [{"type": "bold", "offset": offset, "length": length}]


async def test_a_second_poll_ends_the_first_with_a_conflict_and_so_does_a_webhook() -> None:
    from aiogram.exceptions import TelegramConflictError

    async with FakeTelegram(private=FREE) as fake, bot_at(fake) as bot:
        first = asyncio.create_task(bot.get_updates(timeout=50))
        await fake.until(lambda: fake.server.is_polled)
        second = asyncio.create_task(bot.get_updates(timeout=50))
        with pytest.raises(TelegramConflictError, match="terminated by other getUpdates"):
            await first
        ada = fake.person("ada")
        ada.write(fake.private(ada), "hi")
        assert len(await second) == 1
        fake.world.webhook = "https://x.example/hook"
        with pytest.raises(TelegramConflictError, match="webhook is active"):
            await bot.get_updates(timeout=0)
        await bot.delete_webhook()
        assert len(await bot.get_updates(timeout=0)) == 1  # not confirmed yet


async def test_rates_of_chats_and_of_all_together_are_kept() -> None:
    clock = HandClock()
    async with FakeTelegram(clock=clock, private=BotApiRate(2, 3.0)) as fake:
        limits, chat = fake.limits, 500
        assert [limits.check(chat), limits.check(chat)] == [0, 0]
        assert limits.check(chat) == 3
        clock.advance(2.5)
        assert limits.check(chat) == 1
        assert (limits.told, limits.broken) == (2, 1)
        clock.advance(1.0)
        assert limits.check(chat) == 0
        passed = [limits.check(600 + number) for number in range(40)]
        assert (passed.count(0), set(passed)) == (29, {0, 1})


@pytest.mark.parametrize(
    "text", [RICH, "**bold** and `code`\n\n> quote 🚀\n\n```python\nx = 1\n```", "plain"]
)
def test_what_we_send_is_what_aiograms_types_take(text: str) -> None:
    from aiogram.methods import SendMessage, SendRichMessage

    shown, rich = entity_text(text), rich_message(text)
    SendMessage.model_validate({"chat_id": 1, "text": shown.text, "entities": shown.entities})
    if rich is not None:
        sent = SendRichMessage.model_validate({"chat_id": 1, "rich_message": rich})
        assert sent.rich_message.model_dump(exclude_none=True, exclude_defaults=False)["blocks"]
        assert not extras(sent)


def extras(part: Any) -> list[str]:
    """Fields that aiogram's types do not know."""
    found: list[str] = []
    if isinstance(part, list):
        for each in part:
            found += extras(each)
    elif hasattr(part, "model_fields_set"):
        found += list(part.model_extra or {})
        for name in type(part).model_fields:
            found += extras(getattr(part, name))
    return found
