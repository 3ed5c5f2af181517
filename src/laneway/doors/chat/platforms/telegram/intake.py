"""`TelegramIntake`: what people do on Telegram, checked by its sender, then handed to conversations.

Messages of one chat are taken in their order, those of different chats side by side. What was taken is
stored; the caller confirms it to Telegram only then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from laneway.base.errors import ConversationHeld, ConversationUnknown, LanewayError, StoreError
from laneway.base.plain import code_label
from laneway.doors.chat.messages import Place, Sender
from laneway.doors.chat.platforms.bots.access import BotAccess, Strangers
from laneway.doors.chat.platforms.bots.inbound import BotMessage, BotTap
from laneway.doors.chat.platforms.bots.place_views import STALE, BotPlaceViews
from laneway.doors.chat.platforms.bots.received_files import ReceivedFiles
from laneway.doors.chat.platforms.bots.words import EDITED
from laneway.doors.chat.platforms.telegram.api import (
    MAX_FILE_BYTES,
    TelegramApi,
    TelegramOffline,
    TelegramRefused,
)
from laneway.doors.chat.platforms.telegram.commands import typed
from laneway.doors.chat.platforms.telegram.updates import (
    IMAGES,
    NAME,
    BotName,
    CallbackQuery,
    StoppedDraft,
    TelegramFile,
    TelegramMessage,
    TelegramUpdate,
    TelegramUser,
    origin_of,
    quote_of,
    reply_ref,
    words_for,
)

log = logging.getLogger(__name__)

FETCH_S = 30.0
"""For all files of a message: those that take longer are left out, and the model is told."""
MAX_ANSWER_CHARS = 200
"""That Telegram shows to whoever pressed a button."""


class TelegramIntake:
    def __init__(
        self,
        views: BotPlaceViews,
        access: BotAccess,
        strangers: Strangers,
        api: TelegramApi,
        files: ReceivedFiles,
        bot: BotName,
    ) -> None:
        self._views, self._access, self._strangers = views, access, strangers
        self._api, self._files, self._bot = api, files, bot

    async def handle(self, updates: Sequence[TelegramUpdate]) -> None:
        """Returns when everything in them is stored, or was refused. Raises `StoreError`."""
        by_chat: dict[str, list[list[TelegramUpdate]]] = {}
        for group in _albums(updates):
            by_chat.setdefault(_chat_of(group[0]), []).append(group)
        outcomes = await asyncio.gather(
            *(self._in_order(groups) for groups in by_chat.values()), return_exceptions=True
        )
        for problem in outcomes:
            if isinstance(problem, BaseException):
                raise problem

    async def _in_order(self, groups: list[list[TelegramUpdate]]) -> None:
        for group in groups:
            update = group[0]
            if update.message is not None:
                await self._message([each.message for each in group if each.message is not None])
            elif update.edited_message is not None:
                await self._message([update.edited_message], is_edit=True)
            elif update.callback_query is not None:
                await self._tap(update.callback_query)
            elif update.stopped_message_generation is not None:
                await self._stopped(update.stopped_message_generation, update.update_id)
            else:
                log.warning("update %d of Telegram is not understood, and passed over", update.update_id)

    # ── messages ───────────────────────────────────────────────────────────

    async def _message(self, album: list[TelegramMessage], *, is_edit: bool = False) -> None:
        first = album[0]
        said = [words for words in (words_for(each, self._bot) for each in album) if words is not None]
        user = first.sender
        if not said or user is None or not any(each.is_of_people for each in album):
            return
        what = "an edit" if is_edit else "a message"
        if not self._may_speak(user, first, what):
            return
        try:
            message_id = await self._views.take(await self._read(album, user, said))
        except (ConversationHeld, ConversationUnknown) as problem:
            # It is told, and not taken: nobody waits for an answer that never comes.
            self._views.say(first.place, f"⚠️ {problem}", reply_to=str(first.message_id))
            return
        if is_edit and message_id is None:
            self._views.say(first.place, EDITED, reply_to=str(first.message_id))

    async def _read(self, album: list[TelegramMessage], user: TelegramUser, said: list[str]) -> BotMessage:
        first = album[0]
        images, others, missing = await self._fetch(album)
        text = "\n\n".join([*(words for words in map(typed, said) if words), *missing])
        quote, quote_name = quote_of(first)
        return BotMessage(
            place=first.place,
            message_id=str(first.message_id),
            user_id=str(user.id),
            name=user.shown_name,
            text=text,
            images=tuple(images),
            files=tuple(others),
            reply_ref=reply_ref(first),
            quote=quote,
            quote_name=quote_name,
            origin=origin_of(first),
        )

    async def _fetch(self, album: list[TelegramMessage]) -> tuple[list[Path], list[Path], list[str]]:
        """Paths of images and of other files, and a sentence about each that could not be had."""
        images: list[Path] = []
        others: list[Path] = []
        missing: list[str] = []
        until = asyncio.get_running_loop().time() + FETCH_S
        for message in album:
            for number, file in enumerate(message.files, 1):
                try:
                    path = await self._one_file(
                        f"{message.chat.id}-{message.message_id}-{number}", file, until
                    )
                except (LanewayError, OSError, TimeoutError) as problem:
                    why = str(problem) if isinstance(problem, LanewayError) else type(problem).__name__
                    log.warning("a file of a message could not be had: %s", why)
                    name = code_label(file.file_name, 80) or "without a name"
                    missing.append(f"[Attached file {name} could not be fetched]")
                else:
                    (images if file.mime_type in IMAGES else others).append(path)
        return images, others, missing

    async def _one_file(self, prefix: str, file: TelegramFile, until: float) -> Path:
        if file.file_size > MAX_FILE_BYTES:
            raise LanewayError("it is larger than Telegram lets bots fetch")
        async with asyncio.timeout_at(until):
            content = await self._api.download(file.file_id)
        suffix = {"image/jpeg": ".jpg", "audio/ogg": ".ogg"}.get(file.mime_type, "")
        return await asyncio.to_thread(self._files.keep, prefix, file.file_name or f"file{suffix}", content)

    # ── taps ───────────────────────────────────────────────────────────────

    async def _tap(self, query: CallbackQuery) -> None:
        message = query.message
        if message is None:
            return  # of an inline message, which we never send
        if not self._may_speak(query.sender, message, "a tap"):
            return
        if not message.date:
            # Telegram itself does not have that message any more, and does not say in which topic it was.
            await self._answer(query, STALE, is_alert=True)
            return
        try:
            result = await self._views.tap(
                BotTap(
                    place=message.place,
                    tap_id=query.id,
                    user_id=str(query.sender.id),
                    name=query.sender.shown_name,
                    data=query.data,
                    ref=str(message.message_id),
                )
            )
        except StoreError as problem:
            await self._answer(query, f"⚠️ {problem}", is_alert=True)
            return
        await self._answer(
            query, result.text or ("" if result.is_done else STALE), is_alert=not result.is_done
        )

    async def _answer(self, query: CallbackQuery, text: str, *, is_alert: bool) -> None:
        shown = text if len(text) <= MAX_ANSWER_CHARS else text[: MAX_ANSWER_CHARS - 1] + "…"
        params = {"callback_query_id": query.id, "text": shown or None, "show_alert": is_alert or None}
        try:
            await self._api.call("answerCallbackQuery", params)
        except (TelegramRefused, TelegramOffline) as problem:
            log.warning("a tap was not answered: %s", problem)  # it is too old, or there is no network

    async def _stopped(self, stopped: StoppedDraft, update_id: int) -> None:
        """Drafts are in private chats alone, whose id is that of their user."""
        user_id = str(stopped.chat.id)
        if not self._access.may_speak(user_id, user_id, is_private=True):
            self._strangers.turned_away(user_id, "", user_id, what="a tap")
            return
        sender = Sender(platform=NAME, user_id=user_id, name="", is_owner=self._access.is_owner(user_id))
        try:
            await self._views.stop(stopped.place, f"draft-{update_id}", sender)
        except (ConversationHeld, ConversationUnknown) as problem:
            log.warning("a press of Stop was not taken: %s", problem)

    # ── who ────────────────────────────────────────────────────────────────

    def _may_speak(self, user: TelegramUser, message: TelegramMessage, what: str) -> bool:
        user_id, chat_id = str(user.id), str(message.chat.id)
        if not user.is_bot and self._access.may_speak(user_id, chat_id, is_private=message.is_private):
            return True
        self._strangers.turned_away(user_id, user.shown_name, chat_id, what=what)
        return False


def place_of_update(update: TelegramUpdate) -> Place | None:
    message = update.message or update.edited_message
    if message is None and update.callback_query is not None:
        message = update.callback_query.message
    if message is not None:
        return message.place
    stopped = update.stopped_message_generation
    return None if stopped is None else stopped.place


def _chat_of(update: TelegramUpdate) -> str:
    place = place_of_update(update)
    return "" if place is None else place.key


def _albums(updates: Sequence[TelegramUpdate]) -> list[list[TelegramUpdate]]:
    """Each update alone, but the messages of an album together, where the first of them stood."""
    groups: list[list[TelegramUpdate]] = []
    albums: dict[str, list[TelegramUpdate]] = {}
    for update in updates:
        group = None if update.message is None else update.message.media_group_id
        if group is not None and group in albums:
            albums[group].append(update)
            continue
        groups.append([update])
        if group is not None:
            albums[group] = groups[-1]
    return groups
