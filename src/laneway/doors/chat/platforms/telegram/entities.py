"""Markdown as Telegram's text with entities: every client shows it, and no character can break it. Pure.

Offsets and lengths are in UTF-16 units. Tables become monospaced columns, headings bold lines.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from laneway.doors.chat.platforms.bots.markdown import (
    Code,
    Heading,
    ItemList,
    Mark,
    MarkdownBlock,
    Paragraph,
    Quote,
    Table,
    ThematicBreak,
    Words,
    parse,
)
from laneway.doors.chat.splitting import utf16_units

LONG_QUOTE_LINES = 6
"""Longer quotes are shown folded."""
MAX_TABLE_COLUMNS = 60
"""Of a table as monospaced text; a wider one is written cell by cell."""
_TYPES: dict[Mark, str] = {"bold": "bold", "italic": "italic", "strike": "strikethrough", "code": "code"}


class EntityText(msgspec.Struct, frozen=True):
    text: str
    entities: list[dict[str, Any]]


def entity_text(markdown: str) -> EntityText:
    writer = _Writer()
    writer.blocks(parse(markdown))
    return writer.finish()


class _Writer:
    """The text so far, with what is marked in it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._units = 0
        self._entities: list[dict[str, Any]] = []
        self._in_quote = False

    def finish(self) -> EntityText:
        """Entities must not begin or end beyond the text, which Telegram trims."""
        text = "".join(self._parts).rstrip()
        units = utf16_units(text)
        kept = []
        for entity in self._entities:
            length = min(entity["offset"] + entity["length"], units) - entity["offset"]
            if length > 0:
                kept.append({**entity, "length": length})
        return EntityText(text, sorted(kept, key=lambda each: (each["offset"], -each["length"])))

    def blocks(self, blocks: Sequence[MarkdownBlock], indent: str = "") -> None:
        for index, block in enumerate(blocks):
            if index:
                is_tight = isinstance(block, ItemList) and isinstance(blocks[index - 1], (Paragraph, Heading))
                self._add("\n" if is_tight or indent else "\n\n")
            self._block(block, indent)

    def _block(self, block: MarkdownBlock, indent: str) -> None:
        match block:
            case Heading(words=words):
                self._words(_bold(words), indent)
            case Paragraph(words):
                self._words(words, indent)
            case Code(text=text, language=language):
                begin = self._units
                self._add(text or " ")
                self._mark("pre", begin, **({"language": language} if language else {}))
            case Quote(blocks):
                self._quote(blocks)
            case ItemList(items):
                for index, item in enumerate(items):
                    self._add(("\n" if index else "") + indent)
                    bullet = "• " if item.number is None else f"{item.number}. "
                    checks = {True: "☑ ", False: "☐ "}
                    self._add(bullet if item.is_checked is None else checks[item.is_checked])
                    self.blocks(item.blocks, indent + "   ")
            case Table(rows):
                self._table(rows)
            case ThematicBreak():
                self._add("———")

    def _quote(self, blocks: Sequence[MarkdownBlock]) -> None:
        begin, is_outer = self._units, not self._in_quote
        self._in_quote = True
        first = len(self._parts)
        self.blocks(blocks)
        if is_outer:  # quotes cannot be nested
            self._in_quote = False
            lines = "".join(self._parts[first:]).count("\n") + 1
            self._mark("expandable_blockquote" if lines > LONG_QUOTE_LINES else "blockquote", begin)

    def _table(self, rows: Sequence[Sequence[Sequence[Words]]]) -> None:
        texts = [["".join(words.text for words in cell) for cell in row] for row in rows]
        columns = max(len(row) for row in texts)
        texts = [[*row, *[""] * (columns - len(row))] for row in texts]
        widths = [max(_columns(row[index]) for row in texts) for index in range(columns)]
        if sum(widths) + 3 * (columns - 1) > MAX_TABLE_COLUMNS:
            self._wide_table(rows)
            return
        lines = [
            " │ ".join(cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True))
            for row in texts
        ]
        lines.insert(1, "─┼─".join("─" * width for width in widths))
        begin = self._units
        self._add("\n".join(line.rstrip() for line in lines))
        self._mark("pre", begin)

    def _wide_table(self, rows: Sequence[Sequence[Sequence[Words]]]) -> None:
        """Row by row, each cell behind the name of its column."""
        head, *body = rows
        for index, row in enumerate(body):
            if index:
                self._add("\n\n")
            for number, cell in enumerate(row):
                if number:
                    self._add("\n")
                if number < len(head):
                    self._words(_bold(head[number]), "")
                    self._add(": ")
                self._words(cell, "")

    def _words(self, words: Sequence[Words], indent: str) -> None:
        for each in words:
            begin = self._units
            self._add(each.text.replace("\n", f"\n{indent}"))
            if "code" in each.marks:
                # Nothing may be nested in monospaced text, and it in nothing but a quote.
                self._mark("code", begin)
                continue
            for mark in sorted(each.marks):
                if mark == "link":
                    self._mark("text_link", begin, url=each.url)
                else:
                    self._mark(_TYPES[mark], begin)

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._units += utf16_units(text)

    def _mark(self, kind: str, begin: int, **more: str) -> None:
        if self._units > begin:
            self._entities.append({"type": kind, "offset": begin, "length": self._units - begin, **more})


def _bold(words: Sequence[Words]) -> list[Words]:
    return [replace(each, marks=each.marks | {"bold"}) for each in words]


def _columns(text: str) -> int:
    """The columns of a monospaced text."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
