"""What Telegram refuses of a call, in its own words: lengths, entities, buttons, rich messages, pictures."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from laneway.testing.fake_telegram.world import BLOCKS, Json

MAX_TEXT, MAX_CAPTION, MAX_RICH_CHARS = 4096, 1024, 32_768
MAX_RICH_BLOCKS, MAX_RICH_DEPTH, MAX_TABLE_COLUMNS = 500, 16, 20
MAX_BUTTONS, MAX_ROW = 100, 8
MAX_DATA_BYTES = 64
MAX_ENTITIES = 100
"""More than that lose their effect."""
PLAIN_MARKS = frozenset({"bold", "italic", "underline", "strikethrough", "spoiler", "text_link"})
QUOTES = frozenset({"blockquote", "expandable_blockquote"})
MONO = frozenset({"code", "pre"})
STYLES = frozenset({"danger", "success", "primary"})
_EMOJIS = (
    "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 "
    "🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ "
    "🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡"
)
REACTIONS = frozenset(_EMOJIS.split())

FIELDS: dict[str, frozenset[str]] = {
    method: frozenset(names.split())
    for method, names in {
        "getMe": "",
        "getUpdates": "offset limit timeout allowed_updates",
        "getWebhookInfo": "",
        "deleteWebhook": "drop_pending_updates",
        "setMyCommands": "commands scope language_code",
        "getChat": "chat_id",
        "getFile": "file_id",
        "sendMessage": "chat_id message_thread_id text entities link_preview_options disable_notification "
        "reply_parameters reply_markup parse_mode protect_content",
        "sendRichMessage": "chat_id message_thread_id rich_message disable_notification reply_parameters "
        "reply_markup protect_content",
        "sendMessageDraft": "chat_id message_thread_id draft_id text entities can_stop parse_mode",
        "editMessageText": "chat_id message_id text entities rich_message link_preview_options reply_markup "
        "parse_mode",
        "editMessageReplyMarkup": "chat_id message_id reply_markup",
        "setMessageReaction": "chat_id message_id reaction is_big",
        "sendPhoto": "chat_id message_thread_id photo caption caption_entities disable_notification "
        "reply_parameters reply_markup",
        "sendDocument": "chat_id message_thread_id document caption caption_entities disable_notification "
        "reply_parameters reply_markup",
        "sendMediaGroup": "chat_id message_thread_id media disable_notification reply_parameters",
        "answerCallbackQuery": "callback_query_id text show_alert",
    }.items()
}
"""The methods that are served, and their parameters; `test_fake_telegram` holds them against aiogram's."""


class BotApiRefusal(Exception):
    """An answer with an error."""

    def __init__(self, code: int, description: str, parameters: Json | None = None) -> None:
        super().__init__(f"{code} {description}")
        self.code = code
        self.description = description
        self.parameters = parameters or {}


def bad(description: str) -> BotApiRefusal:
    return BotApiRefusal(400, f"Bad Request: {description}")


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def check_fields(method: str, params: Json) -> None:
    """Telegram passes over what it does not know; here it is a mistake."""
    unknown = set(params) - FIELDS[method]
    if unknown:
        raise bad(f"unknown parameters {sorted(unknown)}")


def check_text(text: Any, entities: Sequence[Json], limit: int, *, may_be_empty: bool = False) -> str:
    """The text as it is kept: Telegram cuts blanks off its end."""
    if not isinstance(text, str):
        raise bad("message text is empty")
    kept = text.rstrip()
    if not kept.strip() and not may_be_empty:
        raise bad("message text is empty")
    if units(kept) > limit:
        raise bad("message caption is too long" if limit == MAX_CAPTION else "message is too long")
    if any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        raise bad("strings must be encoded in UTF-8")
    _check_entities(kept, entities)
    return kept


def _check_entities(text: str, entities: Sequence[Json]) -> None:
    if len(entities) > MAX_ENTITIES:
        raise bad(f"more than {MAX_ENTITIES} entities: the last ones would be without effect")
    encoded = text.encode("utf-16-le")
    spans: list[tuple[int, int, str]] = []
    for entity in entities:
        kind, offset, length = entity["type"], entity["offset"], entity["length"]
        if kind not in PLAIN_MARKS | QUOTES | MONO:
            raise bad(f"unsupported type of an entity: {kind}")
        if length <= 0 or offset < 0 or 2 * (offset + length) > len(encoded):
            raise bad("ENTITY_BOUNDS_INVALID")
        for at in (offset, offset + length):
            if 2 * at < len(encoded) and 0xDC <= encoded[2 * at + 1] < 0xE0:
                raise bad("ENTITY_BOUNDS_INVALID: an entity begins or ends within a letter")
        if kind == "text_link" and not str(entity.get("url", "")).startswith(
            ("http://", "https://", "tg://")
        ):
            raise bad("ENTITY_URL_INVALID")
        spans.append((offset, offset + length, kind))
    for begin, end, kind in spans:
        for other_begin, other_end, other in spans:
            if begin < other_begin < end < other_end:
                raise bad("entities overlap without being nested")
            is_inside = (
                begin <= other_begin
                and other_end <= end
                and (begin, end, kind)
                != (
                    other_begin,
                    other_end,
                    other,
                )
            )
            if is_inside and kind in MONO:
                raise bad("monospaced text contains another entity")
            if is_inside and kind in QUOTES and other in QUOTES:
                raise bad("quotes cannot be nested")


def check_keyboard(markup: Any) -> tuple[tuple[Json, ...], ...]:
    if markup is None:
        return ()
    rows = markup.get("inline_keyboard") if isinstance(markup, dict) else None
    if not isinstance(rows, list):
        raise bad("object expected as reply markup")
    buttons = [button for row in rows for button in row]
    if len(buttons) > MAX_BUTTONS or any(not 1 <= len(row) <= MAX_ROW for row in rows):
        raise bad("REPLY_MARKUP_TOO_LONG")
    for button in buttons:
        if unknown := set(button) - {"text", "callback_data", "style"}:
            raise bad(f"unknown fields of a button {sorted(unknown)}")
        if not str(button.get("text", "")).strip():
            raise bad("text buttons are unallowed in the inline keyboard")
        if not 1 <= len(str(button.get("callback_data", "")).encode()) <= MAX_DATA_BYTES:
            raise bad("BUTTON_DATA_INVALID")
        if button.get("style") not in (None, *STYLES):
            raise bad("BUTTON_STYLE_INVALID")
    return tuple(tuple(row) for row in rows)


def check_reactions(reactions: Any) -> list[str]:
    emojis = [each.get("emoji") for each in reactions or []]
    if len(emojis) > 1:
        raise bad("REACTIONS_TOO_MANY")
    if any(emoji not in REACTIONS for emoji in emojis):
        raise bad("REACTION_INVALID")
    return emojis


# ── rich messages ──────────────────────────────────────────────────────────


def check_rich(message: Any) -> Json:
    if not isinstance(message, dict) or set(message) - {"blocks", "skip_entity_detection", "is_rtl"}:
        raise bad("rich message expected")
    counts = [0, 0]
    _check_blocks(message.get("blocks"), 1, counts)
    if not counts[1]:
        raise bad("rich message is empty")
    if counts[0] > MAX_RICH_BLOCKS:
        raise bad("RICH_MESSAGE_TOO_MANY_BLOCKS")
    if counts[1] > MAX_RICH_CHARS:
        raise bad("RICH_MESSAGE_TOO_LONG")
    return dict(message)


def _check_blocks(blocks: Any, depth: int, counts: list[int]) -> None:
    if not isinstance(blocks, list) or not blocks:
        raise bad("RICH_BLOCKS_EMPTY")
    if depth > MAX_RICH_DEPTH:
        raise bad("RICH_MESSAGE_TOO_DEEP")
    for block in blocks:
        counts[0] += 1
        match block:
            case {"type": "heading", "text": text, "size": int(size)} if 1 <= size <= 6:
                _check_rich_text(text, counts)
            case {"type": "paragraph" | "pre", "text": text}:
                _check_rich_text(text, counts)
            case {"type": "blockquote", "blocks": inner}:
                _check_blocks(inner, depth + 1, counts)
            case {"type": "list", "items": [*items]} if items:
                for item in items:
                    _check_blocks(item.get("blocks"), depth + 1, counts)
            case {"type": "table", "cells": [*rows]} if rows:
                _check_table(rows, counts)
            case {"type": "divider"}:
                counts[1] += 1
            case {"type": kind} if kind in BLOCKS:
                raise bad(f"RICH_BLOCK_INVALID: {kind}")
            case _:
                raise bad("unsupported block of a rich message")


def _check_table(rows: list[Any], counts: list[int]) -> None:
    widths = {len(row) for row in rows}
    if len(widths) != 1 or not 1 <= max(widths) <= MAX_TABLE_COLUMNS:
        raise bad("RICH_TABLE_INVALID")
    for row in rows:
        for cell in row:
            if cell.get("align") not in ("left", "center", "right") or cell.get("valign") not in (
                "top",
                "middle",
                "bottom",
            ):
                raise bad("RICH_TABLE_CELL_INVALID")
            _check_rich_text(cell.get("text", ""), counts)


def _check_rich_text(text: Any, counts: list[int]) -> None:
    match text:
        case str():
            counts[1] += len(text)
        case list():
            for each in text:
                _check_rich_text(each, counts)
        case {"type": "url", "text": inner, "url": str(url)} if url.startswith(("http://", "https://")):
            _check_rich_text(inner, counts)
        case {"type": "bold" | "italic" | "strikethrough" | "code" | "underline", "text": inner}:
            _check_rich_text(inner, counts)
        case _:
            raise bad("RICH_TEXT_INVALID")


# ── pictures ───────────────────────────────────────────────────────────────


def check_photo(content: bytes) -> None:
    if content[:8] == b"\x89PNG\r\n\x1a\n" and len(content) > 24:
        width, height = struct.unpack(">II", content[16:24])
        if width + height > 10_000 or max(width, height) > 20 * min(width, height):
            raise bad("PHOTO_INVALID_DIMENSIONS")
    elif content[:3] != b"\xff\xd8\xff":
        raise bad("IMAGE_PROCESS_FAILED")
