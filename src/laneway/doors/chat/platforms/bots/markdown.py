"""Parses the Markdown of models into blocks and marked words, for services with a markup of their own. Pure.

Headings, paragraphs, code, quotes, lists (also nested and with checkboxes), tables and rules; bold, italic,
struck and monospaced words, and links to web pages. Everything else stays the text it is: HTML, images and
links to anything but the web are shown as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

MAX_DEPTH = 6
"""Of lists and quotes within each other; deeper ones are text."""

Mark: TypeAlias = Literal["bold", "italic", "strike", "code", "link"]


class Words(msgspec.Struct, frozen=True):
    """A piece of text with its marks."""

    text: str
    marks: frozenset[Mark] = frozenset()
    url: str = ""


class Heading(msgspec.Struct, frozen=True):
    level: int
    words: tuple[Words, ...]


class Paragraph(msgspec.Struct, frozen=True):
    words: tuple[Words, ...]


class Code(msgspec.Struct, frozen=True):
    text: str
    language: str = ""


class Quote(msgspec.Struct, frozen=True):
    blocks: tuple[MarkdownBlock, ...]


class ListItem(msgspec.Struct, frozen=True):
    blocks: tuple[MarkdownBlock, ...]
    number: int | None = None
    is_checked: bool | None = None
    """None for an item without a checkbox."""


class ItemList(msgspec.Struct, frozen=True):
    items: tuple[ListItem, ...]


class Table(msgspec.Struct, frozen=True):
    rows: tuple[tuple[tuple[Words, ...], ...], ...]
    """The first one is the head."""


class ThematicBreak(msgspec.Struct, frozen=True):
    pass


MarkdownBlock: TypeAlias = Heading | Paragraph | Code | Quote | ItemList | Table | ThematicBreak

_Test: TypeAlias = Callable[[str], bool]

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_RULE = re.compile(r"^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$")
_ITEM = re.compile(r"^( {0,3})([-*+]|\d{1,9}[.)])(\s+)(?:\[([ xX])\]\s+)?(.*)$")
_QUOTE = re.compile(r"^ {0,3}> ?(.*)$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_CELL = re.compile(r"(?<!\\)\|")


def parse(text: str) -> tuple[MarkdownBlock, ...]:
    return tuple(_blocks(text.replace("\t", "    ").split("\n"), 0))


# ── blocks ─────────────────────────────────────────────────────────────────


def _blocks(lines: list[str], depth: int) -> list[MarkdownBlock]:
    blocks: list[MarkdownBlock] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        heading = _HEADING.match(line)
        if not line.strip():
            at += 1
        elif fence is not None:
            code, at = _code(lines, at + 1, fence)
            blocks.append(code)
        elif heading is not None:
            blocks.append(Heading(len(heading[1]), inline(heading[2])))
            at += 1
        elif _RULE.match(line):
            blocks.append(ThematicBreak())
            at += 1
        elif depth < MAX_DEPTH and _QUOTE.match(line):
            end = _end(lines, at, lambda each: _QUOTE.match(each) is not None)
            inner = [match[1] for match in map(_QUOTE.match, lines[at:end]) if match]
            blocks.append(Quote(tuple(_blocks(inner, depth + 1))))
            at = end
        elif depth < MAX_DEPTH and _ITEM.match(line):
            items, at = _list(lines, at, depth)
            blocks.append(items)
        elif "|" in line and at + 1 < len(lines) and _is_table(line, lines[at + 1]):
            end = _end(lines, at + 2, lambda each: "|" in each and bool(each.strip()))
            rows = (line, *lines[at + 2 : end])
            blocks.append(Table(tuple(_cells(row) for row in rows)))
            at = end
        else:
            end = _end(lines, at + 1, _continues)
            blocks.append(Paragraph(inline("\n".join(each.strip() for each in lines[at:end]))))
            at = end
    return blocks


def _end(lines: list[str], at: int, belongs: _Test) -> int:
    while at < len(lines) and belongs(lines[at]):
        at += 1
    return at


def _continues(line: str) -> bool:
    """Whether the line goes on with a paragraph."""
    starts = (_FENCE, _HEADING, _RULE, _QUOTE, _ITEM)
    return bool(line.strip()) and not any(each.match(line) for each in starts)


def _code(lines: list[str], at: int, fence: re.Match[str]) -> tuple[Code, int]:
    mark = fence[1]
    closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}\s*$")
    end = _end(lines, at, lambda each: closing.match(each) is None)
    return Code("\n".join(lines[at:end]), fence[2][:32]), end + 1


def _list(lines: list[str], at: int, depth: int) -> tuple[ItemList, int]:
    items: list[ListItem] = []
    first = _ITEM.match(lines[at])
    assert first is not None
    is_numbered = first[2][0].isdigit()
    while at < len(lines):
        match = _ITEM.match(lines[at])
        if match is None or match[2][0].isdigit() != is_numbered or _RULE.match(lines[at]):
            break
        indent = len(match[1]) + len(match[2]) + min(len(match[3]), 4)
        inner, at = [match[5]], at + 1
        while at < len(lines):
            line = lines[at]
            is_inside = line.startswith(" " * min(indent, 2)) or _continues(line)
            follows = at + 1 < len(lines) and lines[at + 1].startswith(" " * indent)
            if not (is_inside if line.strip() else follows):
                break
            inner.append(_dedented(line, indent))
            at += 1
        items.append(
            ListItem(
                tuple(_blocks(inner, depth + 1)),
                int(match[2][:-1]) if is_numbered else None,
                None if match[4] is None else match[4] != " ",
            )
        )
        while at + 1 < len(lines) and not lines[at].strip() and _ITEM.match(lines[at + 1]):
            at += 1
    return ItemList(tuple(items)), at


def _dedented(line: str, indent: int) -> str:
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(spaces, indent) :]


def _is_table(head: str, rule: str) -> bool:
    return "-" in rule and _TABLE_RULE.match(rule) is not None and len(_split(head)) == len(_split(rule))


def _cells(row: str) -> tuple[tuple[Words, ...], ...]:
    return tuple(inline(cell.replace("\\|", "|")) for cell in _split(row))


def _split(row: str) -> list[str]:
    row = row.strip().removeprefix("|")
    row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
    return [cell.strip() for cell in _CELL.split(row)]


# ── words ──────────────────────────────────────────────────────────────────

_TICKS = re.compile(r"`+")
_LINK = re.compile(r"\[((?:[^\[\]\\\n]|\\.)+)\]\((https?://[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)\)")
_MARKS: tuple[tuple[str, frozenset[Mark]], ...] = (
    ("***", frozenset({"bold", "italic"})),
    ("**", frozenset({"bold"})),
    ("__", frozenset({"bold"})),
    ("~~", frozenset({"strike"})),
    ("*", frozenset({"italic"})),
    ("_", frozenset({"italic"})),
)
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def inline(text: str, marks: frozenset[Mark] = frozenset(), url: str = "") -> tuple[Words, ...]:
    """The words of one paragraph."""
    words: list[Words] = []
    plain: list[str] = []
    unclosed: set[str] = set()  # marks that nothing closes from here on: looked for once, not at each of them

    def flush() -> None:
        if plain:
            words.append(Words("".join(plain), marks, url))
            plain.clear()

    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "\\" and text[at + 1 : at + 2] in _PUNCTUATION and at + 1 < len(text):
            plain.append(text[at + 1])
            at += 2
            continue
        found = _marked(text, at, marks, url, unclosed)
        if found is None:
            plain.append(letter)
            at += 1
            continue
        flush()
        words += found[0]
        at = found[1]
    flush()
    return tuple(words)


def _marked(
    text: str, at: int, marks: frozenset[Mark], url: str, unclosed: set[str]
) -> tuple[tuple[Words, ...], int] | None:
    """What is marked from here on, and where it ends."""
    letter = text[at]
    if letter == "`":
        ticks = _TICKS.match(text, at)
        assert ticks is not None
        closing = None
        if ticks[0] not in unclosed:
            closing = re.compile(rf"(?<!`){ticks[0]}(?!`)").search(text, ticks.end())
        if closing is None:
            unclosed.add(ticks[0])
            return (Words(ticks[0], marks, url),), ticks.end()
        code = text[ticks.end() : closing.start()]
        code = code[1:-1] if code.startswith(" ") and code.endswith(" ") and code.strip() else code
        return ((Words(code, marks | {"code"}, url),), closing.end())
    if letter == "[" and not url:
        link = _LINK.match(text, at)
        is_image = at > 0 and text[at - 1] == "!"
        if link is not None and not is_image:
            return inline(link[1], marks | {"link"}, link[2]), link.end()
    if letter in "*_~":
        return _emphasis(text, at, marks, url, unclosed)
    return None


def _emphasis(
    text: str, at: int, marks: frozenset[Mark], url: str, unclosed: set[str]
) -> tuple[tuple[Words, ...], int] | None:
    before = text[at - 1] if at else " "
    for mark, adds in _MARKS:
        if not text.startswith(mark, at) or adds <= marks or mark in unclosed:
            continue
        if mark[0] == "_" and (before.isalnum() or before == "_"):
            return None  # snake_case
        start = at + len(mark)
        if start >= len(text) or text[start].isspace():
            continue
        end = _closing(text, start, mark)
        if end is not None:
            return inline(text[start:end], marks | adds, url), end + len(mark)
        unclosed.add(mark)
    return None


def _closing(text: str, start: int, mark: str) -> int | None:
    """Where the mark ends that was opened before `start`: not within code, not after a blank."""
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text[at] == "`":
            ticks = _TICKS.match(text, at)
            assert ticks is not None
            closing = text.find(ticks[0], ticks.end())
            at = ticks.end() if closing < 0 else closing + len(ticks[0])
            continue
        if text.startswith(mark, at) and at > start and not text[at - 1].isspace():
            after = text[at + len(mark) : at + len(mark) + 1]
            is_inner = len(mark) == 1 and after == mark  # the beginning of a double one
            if is_inner:
                at += 2
                continue
            if mark[0] != "_" or not after.isalnum():
                return at
        at += 1
    return None
