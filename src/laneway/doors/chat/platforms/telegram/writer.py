"""`TelegramWriter`: sends the posts of a bot to Telegram, each in the richest form that Telegram takes.

Rich message, text with entities, plain text: what Telegram refuses is tried in the next form. In private
chats a text that grows is a draft, with Telegram's own Stop button; elsewhere a message that is edited.
"""

from __future__ import annotations

import asyncio
import logging
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from laneway.base.plain import label, quoted
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outbox import (
    ChatPace,
    PostHeld,
    PostOutcome,
    PostRefused,
    PostSent,
    ServiceOffline,
)
from laneway.doors.chat.outputs import Button
from laneway.doors.chat.platforms.bots.access import BotAccess
from laneway.doors.chat.platforms.bots.pictures import DiffPictures, as_text, instead_of_pictures
from laneway.doors.chat.platforms.bots.pieces import pieces
from laneway.doors.chat.platforms.bots.posts import STOP_DATA, BotPost, PostLimits
from laneway.doors.chat.platforms.telegram.albums import send_album
from laneway.doors.chat.platforms.telegram.api import (
    TelegramApi,
    TelegramOffline,
    TelegramRefused,
    Upload,
)
from laneway.doors.chat.platforms.telegram.entities import EntityText, entity_text
from laneway.doors.chat.platforms.telegram.rich import rich_message
from laneway.doors.chat.splitting import head_of, utf16_units
from laneway.rendering.diff_images.drawn import DrawnDiff

log = logging.getLogger(__name__)

MAX_UNITS = 4096
"""Of a message, in UTF-16 units."""
MAX_CAPTION_UNITS = 1024
MAX_FILE_BYTES = 50 * 1024 * 1024
"""That bots may send."""
MAX_PHOTO_BYTES = 10 * 1024 * 1024
PHOTOS = frozenset({".png", ".jpg", ".jpeg", ".webp"})
PRIVATE = ChatPace(edit_s=1.0, call_s=1.0, burst=2)
GROUP = ChatPace(edit_s=3.0, call_s=3.3, burst=2)
"""Telegram lets 20 messages a minute into a group."""
ANY_CALL_S = 1 / 20
"""Between two calls, whatever their chats. Telegram allows 30 a second, and calls may arrive bunched: at 28 a
second, fifty busy chats on a busy machine were told to wait, and one call came inside that wait."""
RETRY_S = 5.0
"""Where Telegram asks to wait and does not say for how long."""
WIDE_LABEL_CHARS = 18
"""Buttons with longer labels get a row of their own."""
DRAFT = "draft:"
"""What begins the id of a text that is only a draft so far."""
REACTIONS = {
    "begun": "👀",
    "queued": "🫡",
    "held": "🫡",
    "steered": "⚡",
    "answered": "👌",
    "kept": "🤝",
    "done": "👍",
    "refused": "👎",
}
"""Of the 70 or so that Telegram lets bots use."""
_STYLES = {"yes": "success", "no": "danger"}
_GONE = ("chat not found", "bot was blocked", "bot was kicked", "user is deactivated", "not enough rights")
_UNKNOWN_METHOD = 404


class TelegramWriter:
    """The `BotWriter` of Telegram."""

    def __init__(
        self,
        api: TelegramApi,
        access: BotAccess,
        on_unauthorized: Callable[[], None] = lambda: None,
        *,
        pictures: DiffPictures | None = None,
    ) -> None:
        self._pictures = pictures
        self._api = api
        self._access = access
        self._on_unauthorized = on_unauthorized
        self._has_drafts = True
        self._has_rich = True
        """Until Telegram says that it does not know the method: a Bot API server can be older."""

    limits = PostLimits(units=MAX_UNITS, measure=utf16_units)

    @property
    def name(self) -> str:
        return "telegram"

    def rate_key(self, place: Place) -> str:
        return place.chat

    def pace(self, place: Place) -> ChatPace:
        return PRIVATE if is_private(place) else GROUP

    def may_show(self, place: Place) -> bool:
        allowed = self._access.users if is_private(place) else self._access.chats
        return place.chat in allowed

    async def deliver(self, place: Place, post: BotPost, ref: str) -> PostOutcome:
        try:
            return await self._deliver(place, post, ref)
        except TelegramOffline:
            return ServiceOffline()
        except TelegramRefused as refused:
            return self._outcome(refused)

    async def _deliver(self, place: Place, post: BotPost, ref: str) -> PostOutcome:
        match post.kind:
            case "receipt":
                return await self._react(place, post)
            case "unbutton":
                return await self._unbutton(place, post)
            case "file":
                return PostSent(ref) if ref else await self._send_file(place, post)
            case "gallery":
                return PostSent(ref) if ref else await self._send_gallery(place, post)
            case _ if post.is_partial and is_private(place) and self._has_drafts and _is_no_message(ref):
                return await self._draft(place, post)
            case _:
                return await self._write(place, post, "" if ref.startswith(DRAFT) else ref)

    # ── texts ──────────────────────────────────────────────────────────────

    async def _draft(self, place: Place, post: BotPost) -> PostOutcome:
        draft_id = draft_id_of(post)
        shown = _fitting(post.text)
        params = {
            **_address(place),
            "draft_id": draft_id,
            "text": shown.text,
            "entities": shown.entities or None,
            "can_stop": True if STOP_DATA in [button.data for button in post.buttons] else None,
        }
        try:
            await self._api.call("sendMessageDraft", params)
        except TelegramRefused as refused:
            if refused.code not in (400, _UNKNOWN_METHOD) or _is_gone(refused):
                raise
            self._has_drafts = False
            log.info("Telegram takes no drafts (%s): texts that grow are edited", refused.description)
            return await self._write(place, post, "")
        return PostSent(f"{DRAFT}{draft_id}", is_draft=True)

    async def _write(self, place: Place, post: BotPost, ref: str) -> PostOutcome:
        """A message, in the first form that Telegram takes."""
        forms = self._forms(post)
        for index, form in enumerate(forms):
            try:
                return await self._send(place, post, form, ref)
            except TelegramRefused as refused:
                if _is_unchanged(refused):
                    return PostSent(ref)
                if ref and _is_message_gone(refused):
                    return await self._write(place, post, "")
                if "rich_message" in form and refused.code == _UNKNOWN_METHOD:
                    self._has_rich = False
                elif refused.code != 400 or _is_gone(refused):
                    raise
                if index == len(forms) - 1:
                    raise
        raise AssertionError("there is always a form")

    def _forms(self, post: BotPost) -> list[dict[str, Any]]:
        forms: list[dict[str, Any]] = []
        rich = rich_message(post.text) if self._has_rich and not post.is_partial else None
        if rich is not None:
            forms.append({"rich_message": rich})
        shown = entity_text(post.text)
        if shown.text and utf16_units(shown.text) <= MAX_UNITS:
            forms.append({"text": shown.text, "entities": shown.entities or None})
        return [*forms, {"text": head_of(post.text.strip(), MAX_UNITS) or "…"}]

    async def _send(self, place: Place, post: BotPost, form: Mapping[str, Any], ref: str) -> PostOutcome:
        is_rich = "rich_message" in form
        params: dict[str, Any] = {"chat_id": int(place.chat), **form, "reply_markup": _keyboard(post)}
        if not is_rich:
            params["link_preview_options"] = {"is_disabled": True}
        if ref:
            params["reply_markup"] = params["reply_markup"] or {"inline_keyboard": []}
            await self._api.call("editMessageText", {**params, "message_id": int(ref)})
            return PostSent(ref)
        params |= {**_address(place), **_reply(post)}
        # Words of a lane that only tell how far it is make no noise.
        params["disable_notification"] = True if post.kind in ("work", "plan") else None
        sent = await self._api.call("sendRichMessage" if is_rich else "sendMessage", params)
        return PostSent(str(sent["message_id"]))

    # ── the other kinds ────────────────────────────────────────────────────

    async def _react(self, place: Place, post: BotPost) -> PostOutcome:
        emoji = REACTIONS.get(post.receipt)
        if emoji is None or not post.target.isdigit():
            return PostSent(post.target)
        params = {
            "chat_id": int(place.chat),
            "message_id": int(post.target),
            "reaction": [{"type": "emoji", "emoji": emoji}],
        }
        try:
            await self._api.call("setMessageReaction", params)
        except TelegramRefused as refused:
            if refused.code != 400:
                raise
            # Reactions may be switched off in a group; a message may be deleted.
        return PostSent(post.target)

    async def _unbutton(self, place: Place, post: BotPost) -> PostOutcome:
        params = {
            "chat_id": int(place.chat),
            "message_id": int(post.target),
            "reply_markup": {"inline_keyboard": []},
        }
        try:
            await self._api.call("editMessageReplyMarkup", params)
        except TelegramRefused as refused:
            if refused.code != 400:
                raise
        return PostSent(post.target)

    async def _send_file(self, place: Place, post: BotPost) -> PostOutcome:
        content = post.body.encode() if post.body else await asyncio.to_thread(_content, post.path)
        if isinstance(content, str):
            text = f"📎 {quoted(post.name)} cannot be sent: {content}."
            return await self._write(place, replace(post, text=text), "")
        upload = Upload(post.name or "file", content)
        suffix = os.path.splitext(upload.name)[1].lower()
        is_photo = suffix in PHOTOS and len(upload.content) <= MAX_PHOTO_BYTES
        kinds = [("sendPhoto", "photo")] if is_photo else []
        kinds.append(("sendDocument", "document"))
        caption = entity_text(post.text)
        params: dict[str, Any] = {**_address(place), **_reply(post), "reply_markup": _keyboard(post)}
        if caption.text:
            params["caption"] = head_of(caption.text, MAX_CAPTION_UNITS)
            is_whole = params["caption"] == caption.text
            params["caption_entities"] = caption.entities if is_whole and caption.entities else None
        for index, (method, field) in enumerate(kinds):
            try:
                sent = await self._api.call(method, {**params, field: "attach://file"}, {"file": upload})
                return PostSent(str(sent["message_id"]))
            except TelegramRefused as refused:
                # Telegram takes no photo with odd proportions; as a document it does.
                if index == len(kinds) - 1 or refused.code != 400 or _is_gone(refused):
                    raise
        raise AssertionError("there is always a way to send it")

    async def _send_gallery(self, place: Place, post: BotPost) -> PostOutcome:
        drawn = await self._pictures.draw(post.diff) if self._pictures is not None else DrawnDiff()
        if not drawn.pictures:
            return await self._send_file(place, instead_of_pictures(post))
        caption = entity_text(post.text)
        try:
            sent = await send_album(self._api, _address(place), caption, drawn.pictures)
        except TelegramRefused as refused:
            if refused.code != 400 or _is_gone(refused):
                raise
            if _may_not_attach(refused):
                return await self._write(place, pieces(as_text(post), self.limits)[0], "")
            return await self._send_file(place, instead_of_pictures(post))
        # Telegram counts each of them.
        return PostSent(sent, rest_s=(len(drawn.pictures) - 1) * self.pace(place).call_s)

    # ── outcomes ───────────────────────────────────────────────────────────

    def _outcome(self, refused: TelegramRefused) -> PostOutcome:
        if refused.code == 429:
            return PostHeld(RETRY_S if refused.retry_after_s is None else refused.retry_after_s)
        if refused.code == 401:
            self._on_unauthorized()
            return ServiceOffline()  # until the token is valid again, nothing is lost
        if refused.migrated_to is not None:
            why = f"the group has become a supergroup: allow the chat {refused.migrated_to}"
            return PostRefused(why, is_chat_gone=True)
        return PostRefused(refused.description, is_chat_gone=_is_gone(refused))


def is_private(place: Place) -> bool:
    """Groups and channels have negative ids."""
    return not place.chat.startswith("-")


def draft_id_of(post: BotPost) -> int:
    """Stable for one text, and never 0."""
    return zlib.crc32(post.key.encode()) & 0x7FFFFFFF or 1


def _is_no_message(ref: str) -> bool:
    return not ref or ref.startswith(DRAFT)


def _fitting(text: str) -> EntityText:
    shown = entity_text(text)
    if utf16_units(shown.text) <= MAX_UNITS:
        return shown
    return EntityText(head_of(text, MAX_UNITS), [])


def _address(place: Place) -> dict[str, Any]:
    thread = {"message_thread_id": int(place.topic)} if place.topic else {}
    return {"chat_id": int(place.chat), **thread}


def _reply(post: BotPost) -> dict[str, Any]:
    if not post.target.isdigit():
        return {}
    return {"reply_parameters": {"message_id": int(post.target), "allow_sending_without_reply": True}}


def _keyboard(post: BotPost) -> dict[str, Any] | None:
    """Short buttons side by side, long ones below each other."""
    rows: list[list[dict[str, Any]]] = []
    is_open = False
    for button in post.buttons:
        is_short = len(button.label) <= WIDE_LABEL_CHARS
        if not (is_open and is_short):
            rows.append([])
        rows[-1].append(_button(button))
        is_open = is_short and len(rows[-1]) < 2
    return {"inline_keyboard": rows} if rows else None


def _button(button: Button) -> dict[str, Any]:
    style = _STYLES.get(button.style)
    return {
        "text": label(button.label, 64) or "…",
        "callback_data": button.data,
        **({"style": style} if style else {}),
    }


def _content(path: str) -> bytes | str:
    """What is in the file, or why it cannot be sent."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as problem:
        return problem.strerror or "it cannot be read"
    return content if len(content) <= MAX_FILE_BYTES else "it has more than 50 MB"


def _is_unchanged(refused: TelegramRefused) -> bool:
    return refused.code == 400 and "message is not modified" in refused.description


def _is_message_gone(refused: TelegramRefused) -> bool:
    texts = ("message to edit not found", "message can't be edited", "MESSAGE_ID_INVALID")
    return refused.code == 400 and any(text in refused.description for text in texts)


def _may_not_attach(refused: TelegramRefused) -> bool:
    """Whether a group takes words, but no photos or no files."""
    return "not enough rights to send" in refused.description and "text messages" not in refused.description


def _is_gone(refused: TelegramRefused) -> bool:
    if _may_not_attach(refused):
        return False
    return refused.code == 403 or any(text in refused.description for text in _GONE)
