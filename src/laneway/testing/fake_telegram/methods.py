"""What each method of the fake Telegram does to its world, with Telegram's refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laneway.testing.fake_telegram.checks import (
    MAX_CAPTION,
    MAX_TEXT,
    BotApiRefusal,
    bad,
    check_keyboard,
    check_photo,
    check_reactions,
    check_rich,
    check_text,
)
from laneway.testing.fake_telegram.world import (
    GENERAL,
    BotApiChat,
    BotApiContent,
    BotApiDraft,
    BotApiMessage,
    BotApiWorld,
    Json,
)

MAX_ANSWER = 200
Uploads = dict[str, tuple[str, bytes]]


class BotApiTap:
    """A press of a button, and what the person is shown because of it."""

    def __init__(self, tap_id: str) -> None:
        self.tap_id = tap_id
        self.is_answered = False
        self.answer = ""
        self.is_alert = False


class BotApiMethods:
    def __init__(self, world: BotApiWorld) -> None:
        self._world = world
        self.taps: dict[str, BotApiTap] = {}

    def run(self, method: str, params: Json, files: Uploads) -> Any:
        handlers: dict[str, Callable[[Json, Uploads], Any]] = {
            "getMe": lambda _, __: {
                **self._world.bot.to_json(),
                "can_join_groups": True,
                "can_read_all_group_messages": True,
                "supports_inline_queries": False,
                "has_topics_enabled": True,
            },
            "getWebhookInfo": self._webhook_info,
            "deleteWebhook": self._delete_webhook,
            "setMyCommands": self._set_commands,
            "getChat": lambda given, _: {
                **self._chat(given).to_json(),
                "accent_color_id": 0,
                "max_reaction_count": 11,
                "accepted_gift_types": {
                    "unlimited_gifts": False,
                    "limited_gifts": False,
                    "unique_gifts": False,
                    "premium_subscription": False,
                    "gifts_from_channels": False,
                },
            },
            "getFile": self._get_file,
            "sendMessage": self._send_message,
            "sendRichMessage": self._send_rich,
            "sendMessageDraft": self._send_draft,
            "editMessageText": self._edit_text,
            "editMessageReplyMarkup": self._edit_keyboard,
            "setMessageReaction": self._react,
            "sendPhoto": self._send_photo,
            "sendDocument": self._send_document,
            "sendMediaGroup": self._send_album,
            "answerCallbackQuery": self._answer,
        }
        return handlers[method](params, files)

    # ── messages ───────────────────────────────────────────────────────────

    def _send_message(self, params: Json, files: Uploads) -> Json:
        entities = params.get("entities") or []
        text = check_text(params.get("text"), entities, MAX_TEXT)
        content = BotApiContent(
            text=text, entities=tuple(entities), keyboard=check_keyboard(params.get("reply_markup"))
        )
        return self._world.message_json(self._add(params, content))

    def _send_rich(self, params: Json, files: Uploads) -> Json:
        rich = check_rich(params.get("rich_message"))
        content = BotApiContent(rich=rich, keyboard=check_keyboard(params.get("reply_markup")))
        return self._world.message_json(self._add(params, content))

    def _send_photo(self, params: Json, files: Uploads) -> Json:
        name, content = _upload(params, files, "photo")
        check_photo(content)
        return self._send_file(params, name, content, is_photo=True)

    def _send_document(self, params: Json, files: Uploads) -> Json:
        name, content = _upload(params, files, "document")
        return self._send_file(params, name, content, is_photo=False)

    def _send_file(self, params: Json, name: str, content: bytes, *, is_photo: bool) -> Json:
        shown = self._file_content(params, name, content, is_photo=is_photo)
        return self._world.message_json(self._add(params, shown))

    def _file_content(self, params: Json, name: str, content: bytes, *, is_photo: bool) -> BotApiContent:
        marks = params.get("caption_entities") or []
        caption = check_text(params.get("caption", ""), marks, MAX_CAPTION, may_be_empty=True)
        if not content:
            raise bad("file must be non-empty")
        keyboard = check_keyboard(params.get("reply_markup"))
        file = self._world.add_file(name, content)
        return BotApiContent(
            text=caption, entities=tuple(marks), keyboard=keyboard, file=file.file_id, is_photo=is_photo
        )

    def _send_album(self, params: Json, files: Uploads) -> list[Json]:
        media = params.get("media") or []
        if not 2 <= len(media) <= 10:
            raise bad("group send must contain 2-10 messages")
        contents = []
        for each in media:
            if each.get("type") not in ("photo", "document"):
                raise bad("unsupported type of media")
            name, content = _upload({"media": each["media"]}, files, "media")
            is_photo = each["type"] == "photo"
            if is_photo:
                check_photo(content)
            contents.append(self._file_content(each, name, content, is_photo=is_photo))
        sent = [self._add(params, content) for content in contents]
        for message in sent:
            message.album = f"album-{sent[0].message_id}"
        return [self._world.message_json(message) for message in sent]

    def _add(self, params: Json, content: BotApiContent) -> BotApiMessage:
        chat = self._chat(params)
        thread_id = self._thread(chat, params)
        replied = self._replied(chat, params)
        message = self._world.add_message(chat, self._world.bot, content)
        message.thread_id, message.reply_to = thread_id, replied
        message.is_silent = bool(params.get("disable_notification"))
        self._world.end_drafts(chat, thread_id)
        return message

    def _send_draft(self, params: Json, files: Uploads) -> bool:
        chat = self._chat(params)
        if chat.type != "private":
            raise bad("drafts can be sent to private chats only")
        draft_id = params.get("draft_id")
        if not isinstance(draft_id, int) or not draft_id:
            raise bad("draft_id must be non-zero")
        entities = params.get("entities") or []
        text = check_text(params.get("text", ""), entities, MAX_TEXT, may_be_empty=True)
        thread_id, content = self._thread(chat, params), BotApiContent(text=text, entities=tuple(entities))
        for draft in self._world.drafts:
            if (draft.chat, draft.thread_id, draft.draft_id) == (chat, thread_id, draft_id):
                draft.versions.append(content)
                draft.is_shown, draft.can_stop = True, bool(params.get("can_stop"))
                return True
        self._world.end_drafts(chat, thread_id)
        self._world.drafts.append(
            BotApiDraft(
                chat=chat,
                thread_id=thread_id,
                draft_id=draft_id,
                versions=[content],
                can_stop=bool(params.get("can_stop")),
            )
        )
        return True

    def _edit_text(self, params: Json, files: Uploads) -> Json:
        message = self._own(params, "edited")
        if message.now.file:
            raise bad("there is no text in the message to edit")
        keyboard = check_keyboard(params.get("reply_markup"))
        if params.get("rich_message") is not None:
            content = BotApiContent(rich=check_rich(params["rich_message"]), keyboard=keyboard)
        else:
            entities = params.get("entities") or []
            text = check_text(params.get("text"), entities, MAX_TEXT)
            content = BotApiContent(text=text, entities=tuple(entities), keyboard=keyboard)
        return self._change(message, content)

    def _edit_keyboard(self, params: Json, files: Uploads) -> Json:
        message = self._own(params, "edited")
        now = message.now
        content = BotApiContent(
            text=now.text,
            entities=now.entities,
            rich=now.rich,
            keyboard=check_keyboard(params.get("reply_markup")),
            file=now.file,
            is_photo=now.is_photo,
        )
        return self._change(message, content)

    def _change(self, message: BotApiMessage, content: BotApiContent) -> Json:
        if content == message.now:
            raise bad(
                "message is not modified: specified new message content and reply markup are exactly the "
                "same as a current content and reply markup of the message"
            )
        message.versions.append(content)
        return self._world.message_json(message)

    def _react(self, params: Json, files: Uploads) -> bool:
        chat = self._chat(params)
        message = self._world.messages.get((chat.chat_id, int(params["message_id"])))
        if message is None or message.is_deleted:
            raise bad("message to react not found")
        if not chat.takes_reactions:
            raise bad("REACTION_INVALID")
        message.reactions += check_reactions(params.get("reaction"))
        return True

    def _answer(self, params: Json, files: Uploads) -> bool:
        tap = self.taps.get(str(params.get("callback_query_id")))
        if tap is None or tap.is_answered:
            raise bad("query is too old and response timeout expired or query ID is invalid")
        text = str(params.get("text") or "")
        if len(text) > MAX_ANSWER:
            raise bad("MESSAGE_TOO_LONG")
        tap.is_answered, tap.answer, tap.is_alert = True, text, bool(params.get("show_alert"))
        return True

    # ── the rest ───────────────────────────────────────────────────────────

    def _webhook_info(self, params: Json, files: Uploads) -> Json:
        waiting = len(self._world.updates)
        return {
            "url": self._world.webhook,
            "has_custom_certificate": False,
            "pending_update_count": waiting,
        }

    def _delete_webhook(self, params: Json, files: Uploads) -> bool:
        self._world.webhook = ""
        return True

    def _set_commands(self, params: Json, files: Uploads) -> bool:
        commands = params.get("commands") or []
        for command in commands:
            name, about = command.get("command", ""), command.get("description", "")
            if not (name.isascii() and name == name.lower() and name.replace("_", "a").isalnum()):
                raise bad("BOT_COMMAND_INVALID")
            if not (1 <= len(name) <= 32 and 1 <= len(about) <= 256):
                raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
        if len(commands) > 100:
            raise bad("BOT_COMMANDS_TOO_MUCH")
        self._world.commands = commands
        return True

    def _get_file(self, params: Json, files: Uploads) -> Json:
        file = self._world.files.get(str(params.get("file_id")))
        if file is None:
            raise bad("invalid file_id")
        if len(file.content) > 20 * 1024 * 1024:
            raise bad("file is too big")
        size = len(file.content)
        return {
            "file_id": file.file_id,
            "file_unique_id": f"u{file.file_id}",
            "file_size": size,
            "file_path": file.file_id,
        }

    # ── lookups ────────────────────────────────────────────────────────────

    def _chat(self, params: Json) -> BotApiChat:
        chat = self._world.chats.get(int(params.get("chat_id") or 0))
        if chat is None:
            raise bad("chat not found")
        if chat.blocked_by_user:
            raise BotApiRefusal(403, "Forbidden: bot was blocked by the user")
        if chat.migrated_to:
            raise BotApiRefusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                {"migrate_to_chat_id": chat.migrated_to},
            )
        return chat

    def _thread(self, chat: BotApiChat, params: Json) -> int:
        thread_id = int(params.get("message_thread_id") or 0)
        if thread_id and thread_id not in chat.topics and thread_id != GENERAL:
            raise bad("message thread not found")
        return thread_id

    def _replied(self, chat: BotApiChat, params: Json) -> BotApiMessage | None:
        reply = params.get("reply_parameters")
        if reply is None:
            return None
        message = self._world.messages.get((chat.chat_id, int(reply["message_id"])))
        if (message is None or message.is_deleted) and not reply.get("allow_sending_without_reply"):
            raise bad("message to be replied not found")
        return message

    def _own(self, params: Json, what: str) -> BotApiMessage:
        chat = self._chat(params)
        message = self._world.messages.get((chat.chat_id, int(params.get("message_id") or 0)))
        if message is None or message.is_deleted:
            raise bad("message to edit not found")
        if message.sender is not self._world.bot:
            raise bad(f"message can't be {what}")
        return message


def _upload(params: Json, files: Uploads, field: str) -> tuple[str, bytes]:
    name = str(params.get(field, ""))
    if not name.startswith("attach://") or name.removeprefix("attach://") not in files:
        raise bad(f"there is no {field} in the request")
    return files[name.removeprefix("attach://")]
