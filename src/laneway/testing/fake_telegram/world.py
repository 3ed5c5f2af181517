"""The state of the fake Telegram: users, chats with topics, messages, drafts, files, updates that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]
BOT_ID = 7_000_000_001
FIRST_USER_ID = 500_000_001
FIRST_GROUP_ID = -1_001_000_000_001
GENERAL = 1
"""The topic of a forum that is always there, and is no topic in messages."""


class BotApiUser(msgspec.Struct, kw_only=True, eq=False):
    user_id: int
    first_name: str
    username: str = ""
    is_bot: bool = False

    def to_json(self) -> Json:
        username = {"username": self.username} if self.username else {}
        return {"id": self.user_id, "is_bot": self.is_bot, "first_name": self.first_name, **username}


class BotApiChat(msgspec.Struct, kw_only=True, eq=False):
    chat_id: int
    type: str
    title: str = ""
    user: BotApiUser | None = None
    """Of a private chat."""
    is_forum: bool = False
    topics: dict[int, str] = {}
    blocked_by_user: bool = False
    migrated_to: int = 0
    takes_reactions: bool = True

    def to_json(self) -> Json:
        if self.user is not None:
            username = {"username": self.user.username} if self.user.username else {}
            return {"id": self.chat_id, "type": "private", "first_name": self.user.first_name, **username}
        forum = {"is_forum": True} if self.is_forum else {}
        return {"id": self.chat_id, "type": self.type, "title": self.title, **forum}


class BotApiContent(msgspec.Struct, kw_only=True, frozen=True):
    """What a message shows; an edit replaces it."""

    text: str = ""
    entities: tuple[Json, ...] = ()
    rich: Json | None = None
    keyboard: tuple[tuple[Json, ...], ...] = ()
    file: str = ""
    """The id of a file: a photo or a document, with the text as its caption."""
    is_photo: bool = False

    @property
    def plain(self) -> str:
        """All words that can be read."""
        return plain_of(self.rich["blocks"]) if self.rich is not None else self.text


class BotApiMessage(msgspec.Struct, kw_only=True, eq=False):
    message_id: int
    chat: BotApiChat
    sender: BotApiUser
    date: int
    versions: list[BotApiContent]
    thread_id: int = 0
    reply_to: BotApiMessage | None = None
    quote: str = ""
    forwarded_from: str = ""
    album: str = ""
    is_silent: bool = False
    is_deleted: bool = False
    reactions: list[str] = []
    """Of the bot, the latest last; Telegram shows one."""
    topic_made: str = ""

    @property
    def now(self) -> BotApiContent:
        return self.versions[-1]

    @property
    def text(self) -> str:
        return self.now.plain

    @property
    def labels(self) -> list[str]:
        return [button["text"] for row in self.now.keyboard for button in row]


class BotApiDraft(msgspec.Struct, kw_only=True, eq=False):
    """A text that grows above the field for words; it goes when a message comes."""

    chat: BotApiChat
    thread_id: int
    draft_id: int
    versions: list[BotApiContent]
    can_stop: bool
    is_shown: bool = True

    @property
    def text(self) -> str:
        return self.versions[-1].text


class BotApiFile(msgspec.Struct, kw_only=True, frozen=True):
    file_id: str
    name: str
    content: bytes
    mime_type: str = ""


class BotApiWorld:
    def __init__(self, wall: Callable[[], float]) -> None:
        self.wall = wall
        self.bot = BotApiUser(user_id=BOT_ID, first_name="Laneway", username="laneway_bot", is_bot=True)
        self.users: dict[str, BotApiUser] = {}
        self.chats: dict[int, BotApiChat] = {}
        self.messages: dict[tuple[int, int], BotApiMessage] = {}
        self.drafts: list[BotApiDraft] = []
        self.files: dict[str, BotApiFile] = {}
        self.updates: list[Json] = []
        self.commands: list[Json] = []
        self.webhook = ""
        self._next_update = 100_000_000
        self._next_message = 100

    def add_user(self, name: str) -> BotApiUser:
        if name not in self.users:
            user_id = FIRST_USER_ID + len(self.users)
            self.users[name] = BotApiUser(user_id=user_id, first_name=name.capitalize(), username=name)
        return self.users[name]

    def private(self, user: BotApiUser) -> BotApiChat:
        return self.chats.setdefault(
            user.user_id, BotApiChat(chat_id=user.user_id, type="private", user=user)
        )

    def add_group(self, title: str, *, is_forum: bool) -> BotApiChat:
        chat_id = FIRST_GROUP_ID - sum(chat.user is None for chat in self.chats.values())
        chat = BotApiChat(chat_id=chat_id, type="supergroup", title=title, is_forum=is_forum, topics={})
        self.chats[chat_id] = chat
        return chat

    def add_topic(self, chat: BotApiChat, name: str, by: BotApiUser) -> int:
        message = self.add_message(chat, by, BotApiContent())
        message.thread_id, message.topic_made = message.message_id, name
        chat.topics[message.message_id] = name
        return message.message_id

    def add_message(self, chat: BotApiChat, sender: BotApiUser, content: BotApiContent) -> BotApiMessage:
        self._next_message += 1
        message = BotApiMessage(
            message_id=self._next_message,
            chat=chat,
            sender=sender,
            date=int(self.wall()),
            versions=[content],
            reactions=[],
        )
        self.messages[chat.chat_id, message.message_id] = message
        return message

    def add_file(self, name: str, content: bytes, mime_type: str = "") -> BotApiFile:
        file = BotApiFile(
            file_id=f"file-{len(self.files) + 1}", name=name, content=content, mime_type=mime_type
        )
        self.files[file.file_id] = file
        return file

    def add_update(self, **what: Json) -> int:
        self._next_update += 1
        self.updates.append({"update_id": self._next_update, **what})
        return self._next_update

    def end_drafts(self, chat: BotApiChat, thread_id: int) -> None:
        for draft in self.drafts:
            if draft.chat is chat and draft.thread_id == thread_id:
                draft.is_shown = False

    # ── as Telegram tells it ───────────────────────────────────────────────

    def message_json(self, message: BotApiMessage, *, has_reply: bool = True) -> Json:
        told: Json = {
            "message_id": message.message_id,
            "date": message.date,
            "chat": message.chat.to_json(),
            "from": message.sender.to_json(),
        }
        if len(message.versions) > 1:
            told["edit_date"] = int(self.wall())
        if message.thread_id:
            told |= {"message_thread_id": message.thread_id, "is_topic_message": True}
        if message.topic_made:
            told["forum_topic_created"] = {"name": message.topic_made, "icon_color": 7322096}
        told |= self._content_json(message.now)
        if message.album:
            told["media_group_id"] = message.album
        if message.forwarded_from:
            told["forward_origin"] = {
                "type": "hidden_user",
                "date": message.date,
                "sender_user_name": message.forwarded_from,
            }
        if has_reply:
            replied = message.reply_to
            if replied is None and message.thread_id and not message.topic_made:
                replied = self.messages.get((message.chat.chat_id, message.thread_id))
            if replied is not None:
                told["reply_to_message"] = self.message_json(replied, has_reply=False)
        if message.quote:
            told["quote"] = {"text": message.quote, "position": 0, "is_manual": True}
        return told

    def _content_json(self, content: BotApiContent) -> Json:
        told: Json = {}
        if content.rich is not None:
            told["rich_message"] = {"blocks": _received(content.rich["blocks"])}
        words, marks = ("caption", "caption_entities") if content.file else ("text", "entities")
        if content.text:
            told[words] = content.text
        if content.entities:
            told[marks] = list(content.entities)
        if content.keyboard:
            told["reply_markup"] = {"inline_keyboard": [list(row) for row in content.keyboard]}
        if content.file:
            file = self.files[content.file]
            size: Json = {"file_id": file.file_id, "file_unique_id": f"u{file.file_id}"}
            if content.is_photo:
                small = {**size, "file_id": file.file_id, "width": 90, "height": 60, "file_size": 900}
                large = {**size, "width": 900, "height": 600, "file_size": len(file.content)}
                told["photo"] = [small, large]
            else:
                told["document"] = {
                    **size,
                    "file_name": file.name,
                    "file_size": len(file.content),
                    "mime_type": file.mime_type or "application/octet-stream",
                }
        return told


def plain_of(part: Any) -> str:
    """The words of the blocks of a rich message."""
    match part:
        case str():
            return part
        case list():
            is_blocks = any(
                isinstance(each, dict) and "type" in each and each["type"] in BLOCKS for each in part
            )
            return ("\n" if is_blocks else "").join(plain_of(each) for each in part)
        case {"type": "divider"}:
            return "———"
        case {"cells": cells}:
            return "\n".join(" | ".join(plain_of(cell.get("text", "")) for cell in row) for row in cells)
        case {"items": items}:
            return "\n".join(plain_of(item["blocks"]) for item in items)
        case {"blocks": blocks}:
            return plain_of(blocks)
        case {"text": text}:
            return plain_of(text)
        case _:
            return ""


BLOCKS = frozenset({"heading", "paragraph", "pre", "blockquote", "list", "table", "divider"})


def _received(blocks: list[Any]) -> list[Json]:
    """Blocks as they come back: items of lists have labels."""
    told: list[Json] = []
    for block in blocks:
        match block:
            case {"type": "list", "items": items}:
                told.append(
                    {
                        **block,
                        "items": [
                            {
                                **item,
                                "label": f"{item['value']}." if "value" in item else "•",
                                "blocks": _received(item["blocks"]),
                            }
                            for item in items
                        ],
                    }
                )
            case {"blocks": inner}:
                told.append({**block, "blocks": _received(inner)})
            case _:
                told.append(block)
    return told
