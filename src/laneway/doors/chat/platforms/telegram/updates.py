"""What Telegram tells, as values: messages, taps, stopped drafts; and whether a message is for the bot. Pure.

Reads the fields that are needed and nothing else; an update of an unknown kind is none. In groups a message
is for the bot if it mentions it, replies to it, or is a command that names no other bot.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.doors.chat.messages import Place
from laneway.doors.chat.splitting import utf16_units

NAME = "telegram"
ALLOWED_UPDATES = ["message", "edited_message", "callback_query", "stopped_message_generation"]
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")


class TelegramUser(msgspec.Struct, frozen=True):
    id: int
    first_name: str = ""
    last_name: str = ""
    username: str = ""
    is_bot: bool = False

    @property
    def shown_name(self) -> str:
        return " ".join(part for part in (self.first_name, self.last_name) if part) or self.username


class TelegramChat(msgspec.Struct, frozen=True):
    id: int
    type: str = ""
    title: str = ""


class TelegramFile(msgspec.Struct, frozen=True):
    file_id: str
    file_name: str = ""
    mime_type: str = ""
    file_size: int = 0
    width: int = 0


class TelegramEntity(msgspec.Struct, frozen=True):
    type: str
    offset: int
    length: int
    user: TelegramUser | None = None


class TelegramOrigin(msgspec.Struct, frozen=True):
    type: str = ""
    sender_user: TelegramUser | None = None
    sender_user_name: str = ""
    sender_chat: TelegramChat | None = None
    chat: TelegramChat | None = None

    @property
    def shown_name(self) -> str:
        if self.sender_user is not None:
            return self.sender_user.shown_name
        chat = self.sender_chat or self.chat
        return self.sender_user_name or (chat.title if chat else "") or "somebody"


class TelegramQuote(msgspec.Struct, frozen=True):
    text: str = ""


class ExternalReply(msgspec.Struct, frozen=True):
    origin: TelegramOrigin = TelegramOrigin()


class TelegramMessage(msgspec.Struct, frozen=True):
    message_id: int
    chat: TelegramChat
    date: int = 0
    sender: TelegramUser | None = msgspec.field(default=None, name="from")
    sender_chat: TelegramChat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    text: str = ""
    caption: str = ""
    entities: tuple[TelegramEntity, ...] = ()
    caption_entities: tuple[TelegramEntity, ...] = ()
    reply_to_message: TelegramMessage | None = None
    external_reply: ExternalReply | None = None
    quote: TelegramQuote | None = None
    forward_origin: TelegramOrigin | None = None
    media_group_id: str | None = None
    photo: tuple[TelegramFile, ...] = ()
    document: TelegramFile | None = None
    voice: TelegramFile | None = None
    audio: TelegramFile | None = None
    video: TelegramFile | None = None
    forum_topic_created: Any = None

    @property
    def words(self) -> str:
        return self.text or self.caption

    @property
    def is_private(self) -> bool:
        return self.chat.type == "private"

    @property
    def place(self) -> Place:
        # Outside of forums a thread is only a chain of replies.
        thread = self.message_thread_id if self.is_topic_message else None
        return Place(platform=NAME, chat=str(self.chat.id), topic=str(thread) if thread else "")

    @property
    def files(self) -> tuple[TelegramFile, ...]:
        """What is attached: of a photo its largest size."""
        photo = max(self.photo, key=lambda size: size.width, default=None)
        named = None if photo is None else msgspec.structs.replace(photo, mime_type="image/jpeg")
        each = (named, self.document, self.voice, self.audio, self.video)
        return tuple(file for file in each if file is not None)

    @property
    def is_of_people(self) -> bool:
        """Whether it has something to act upon; joins, pins and topics have not."""
        return bool(self.words or self.files)


class CallbackQuery(msgspec.Struct, frozen=True):
    id: str
    sender: TelegramUser = msgspec.field(name="from")
    message: TelegramMessage | None = None
    data: str = ""


class StoppedDraft(msgspec.Struct, frozen=True):
    chat: TelegramChat
    draft_id: int
    message_thread_id: int | None = None

    @property
    def place(self) -> Place:
        topic = str(self.message_thread_id) if self.message_thread_id else ""
        return Place(platform=NAME, chat=str(self.chat.id), topic=topic)


class TelegramUpdate(msgspec.Struct, frozen=True):
    update_id: int
    message: TelegramMessage | None = None
    edited_message: TelegramMessage | None = None
    callback_query: CallbackQuery | None = None
    stopped_message_generation: StoppedDraft | None = None


class _OnlyId(msgspec.Struct):
    update_id: int


def updates_of(result: Any) -> list[TelegramUpdate]:
    """One that cannot be understood keeps its number, so that it is not asked for again for ever."""
    found = []
    for each in result if isinstance(result, list) else []:
        try:
            found.append(msgspec.convert(each, TelegramUpdate))
        except msgspec.ValidationError:
            found.append(TelegramUpdate(update_id=msgspec.convert(each, _OnlyId).update_id))
    return found


class BotName(msgspec.Struct, frozen=True):
    """Who the bot is, as `getMe` says."""

    id: int
    username: str = ""


def words_for(message: TelegramMessage, bot: BotName) -> str | None:
    """The words of a message without the bot's own name; none if they are not for this bot."""
    words, entities = message.words, message.entities or message.caption_entities
    is_for_us = message.is_private or _is_reply_to(message, bot)
    command = next((each for each in entities if each.type == "bot_command" and each.offset == 0), None)
    if command is not None:
        name = _part(words, command)
        bare, _, whose = name.partition("@")
        if whose and whose.lower() != bot.username.lower():
            return None
        return bare + words[len(name) :]
    for entity in entities:
        if _is_mention_of(words, entity, bot):
            is_for_us = True
            if entity.offset == 0:
                return words[len(_part(words, entity)) :].strip()
    return words if is_for_us else None


def quote_of(message: TelegramMessage) -> tuple[str, str]:
    """What the message quotes or replies to, and whose words they are."""
    replied = message.reply_to_message
    if replied is not None and replied.forum_topic_created is not None:
        replied = None  # in a topic each message is a reply to its beginning
    name = ""
    if replied is not None and replied.sender is not None:
        name = replied.sender.shown_name
    elif message.external_reply is not None:
        name = message.external_reply.origin.shown_name
    if message.quote is not None:
        return message.quote.text, name
    if replied is not None and not (replied.sender is not None and replied.sender.is_bot):
        return replied.words, name
    return "", name


def reply_ref(message: TelegramMessage) -> str:
    return "" if message.reply_to_message is None else str(message.reply_to_message.message_id)


def origin_of(message: TelegramMessage) -> str:
    return "" if message.forward_origin is None else f"forwarded from {message.forward_origin.shown_name}"


def _is_reply_to(message: TelegramMessage, bot: BotName) -> bool:
    replied = message.reply_to_message
    return replied is not None and replied.sender is not None and replied.sender.id == bot.id


def _is_mention_of(words: str, entity: TelegramEntity, bot: BotName) -> bool:
    if entity.type == "text_mention":
        return entity.user is not None and entity.user.id == bot.id
    return entity.type == "mention" and _part(words, entity).lower() == f"@{bot.username}".lower()


def _part(words: str, entity: TelegramEntity) -> str:
    """The text of an entity, whose numbers are in UTF-16 units."""
    if utf16_units(words) == len(words):
        return words[entity.offset : entity.offset + entity.length]
    encoded = words.encode("utf-16-le", "surrogatepass")
    part = encoded[2 * entity.offset : 2 * (entity.offset + entity.length)]
    return part.decode("utf-16-le", "replace")
