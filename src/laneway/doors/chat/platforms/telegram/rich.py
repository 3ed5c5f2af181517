"""Markdown as the blocks of a rich message: headings, tables, checklists and nested lists.

Pure. Blocks, not Telegram's own Markdown: so nothing of a model's text can become media, formulas or HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laneway.doors.chat.platforms.bots.markdown import (
    Code,
    Heading,
    ItemList,
    ListItem,
    Mark,
    MarkdownBlock,
    Paragraph,
    Quote,
    Table,
    ThematicBreak,
    Words,
    parse,
)

_TYPES: dict[Mark, str] = {"bold": "bold", "italic": "italic", "strike": "strikethrough", "code": "code"}


def rich_message(markdown: str) -> dict[str, Any] | None:
    """The message, if it has something that plain text with entities cannot show; else none."""
    blocks = parse(markdown)
    if not any(_is_rich(block) for block in blocks):
        return None
    # Words that look like an address or a command are not made one: some of them Telegram refuses.
    return {"blocks": [_block(block) for block in blocks], "skip_entity_detection": True}


def _is_rich(block: MarkdownBlock) -> bool:
    match block:
        case Heading() | Table() | ThematicBreak():
            return True
        case ItemList(items):
            return any(
                item.is_checked is not None or any(isinstance(each, (ItemList, Code)) for each in item.blocks)
                for item in items
            )
        case Quote(blocks):
            return any(not isinstance(each, Paragraph) for each in blocks)
        case _:
            return False


def _block(block: MarkdownBlock) -> dict[str, Any]:
    match block:
        case Heading(level=level, words=words):
            return {"type": "heading", "text": _text(words), "size": level}
        case Paragraph(words):
            return {"type": "paragraph", "text": _text(words)}
        case Code(text=text, language=language):
            return {"type": "pre", "text": text or " ", **({"language": language} if language else {})}
        case Quote(blocks):
            return {"type": "blockquote", "blocks": [_block(each) for each in blocks] or [_empty()]}
        case ItemList(items):
            return {"type": "list", "items": [_item(item) for item in items]}
        case Table(rows):
            columns = max(len(row) for row in rows)
            cells = [
                [
                    _cell(row[index] if index < len(row) else (), is_header=number == 0)
                    for index in range(columns)
                ]
                for number, row in enumerate(rows)
            ]
            return {"type": "table", "cells": cells, "is_bordered": True}
        case ThematicBreak():
            return {"type": "divider"}


def _item(item: ListItem) -> dict[str, Any]:
    made: dict[str, Any] = {"blocks": [_block(each) for each in item.blocks] or [_empty()]}
    if item.is_checked is not None:
        made |= {"has_checkbox": True, "is_checked": item.is_checked}
    if item.number is not None:
        made |= {"value": item.number, "type": "1"}
    return made


def _cell(words: Sequence[Words], *, is_header: bool) -> dict[str, Any]:
    return {"text": _text(words), "align": "left", "valign": "top", "is_header": is_header}


def _empty() -> dict[str, Any]:
    return {"type": "paragraph", "text": ""}


def _text(words: Sequence[Words]) -> Any:
    """One text, or a list of texts."""
    texts = [_marked(each) for each in words]
    return texts[0] if len(texts) == 1 else texts or ""


def _marked(words: Words) -> Any:
    text: Any = words.text
    for mark in sorted(words.marks - {"link"}):
        text = {"type": _TYPES[mark], "text": text}
    return {"type": "url", "text": text, "url": words.url} if "link" in words.marks else text
