"""Splits streamed Markdown into finished blocks: paragraphs, headings, list items, code.

Pure, and linear in the length of the text. Every line is returned once and in order, except empty
lines between blocks. A block that ends too early would render wrongly: in doubt it stays open.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

BlockKind: TypeAlias = Literal["text", "heading", "item", "code"]
MAX_CODE_LINES = 40
"""Lines of code after which a part is shown: a long listing scrolls instead of standing still."""
MAX_BLOCK_CHARS = 32 * 1024
"""A paragraph longer than this is shown in pieces."""
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")
_ITEM = re.compile(r"^ {0,3}([-*+]|\d{1,9}[.)])(\s|$)")
_INTERRUPTING = re.compile(r"^ {0,3}([-*+]|1[.)])\s+\S")
"""List items that may directly follow a line of a paragraph."""
_RULE = re.compile(r"^ {0,3}([-*_])(\s*\1){2,}\s*$")


class Block(msgspec.Struct, frozen=True):
    """A finished block of Markdown."""

    kind: BlockKind
    text: str
    goes_on: bool = False
    """Whether it continues the block before: the next list item, or the next part of a listing."""


class MarkdownBlocks:
    """Takes text by `feed`, and its end by `end`; both return the blocks that are finished."""

    def __init__(self) -> None:
        self._part = ""
        self._lines: list[str] = []
        self._chars = 0
        self._kind: BlockKind = "text"
        self._goes_on = False
        self._fence = ""
        self._opening = ""
        self._is_inner = False
        """Whether the fence is inside a list item."""
        self._is_after_blank = False
        self._indent = 0
        """Indentation of the list's items."""

    @property
    def open_text(self) -> str:
        """What is not part of a finished block yet."""
        return "\n".join([*self._lines, self._part]).lstrip("\n")

    def feed(self, text: str) -> list[Block]:
        *lines, self._part = (self._part + text).split("\n")
        return [block for line in lines for block in self._line(line)]

    def end(self) -> list[Block]:
        blocks = self._line(self._part) if self._part else []
        self._part = ""
        return blocks + self._cut()

    @property
    def open_block(self) -> Block:
        """What is not finished yet, as far as it has come."""
        return Block(self._kind, "\n".join([*self._lines, self._part]).strip("\n"), self._goes_on)

    def _line(self, line: str) -> list[Block]:
        if self._fence:
            return self._code_line(line)
        if not line.strip():
            return self._blank_line(line)
        done: list[Block] = []
        if (fence := _FENCE.match(line.lstrip() if self._kind == "item" else line)) and self._opens(fence):
            is_inner = self._kind == "item" and line.startswith((" ", "\t"))
            if not is_inner:
                done = self._cut()
                self._kind, self._opening = "code", line
            self._fence, self._is_inner = fence[1], is_inner
            self._add(line)
            return done
        if _HEADING.match(line):
            done = self._cut()
            self._kind = "heading"
            self._add(line)
            return done + self._cut()
        if self._begins_item(line):
            was_item = self._kind == "item"
            done = self._cut()
            self._kind, self._goes_on, self._indent = "item", was_item, _indent(line)
        elif self._is_after_blank and not (self._kind == "item" and line.startswith((" ", "\t"))):
            done = self._cut()
        self._add(line)
        return done + (self._cut() if self._chars > MAX_BLOCK_CHARS else [])

    def _begins_item(self, line: str) -> bool:
        """Whether an item of the outermost list begins here; one that is indented belongs to its parent."""
        if not _ITEM.match(line) or _RULE.match(line):
            return False
        if self._kind == "item":
            return _indent(line) <= self._indent + 1
        return not self._lines or bool(_INTERRUPTING.match(line))

    @staticmethod
    def _opens(fence: re.Match[str]) -> bool:
        return not (fence[1].startswith("`") and "`" in fence[2])

    def _blank_line(self, line: str) -> list[Block]:
        if not self._lines:
            return []
        if self._kind == "item":
            self._is_after_blank = True
            self._lines.append(line)
            return []
        return self._cut()

    def _code_line(self, line: str) -> list[Block]:
        self._add(line)
        bare = line.strip()
        if bare.startswith(self._fence) and not bare.strip(self._fence[0]):
            self._fence = ""
            return [] if self._is_inner else self._cut()
        if self._is_inner or len(self._lines) <= MAX_CODE_LINES:
            return []
        fence, opening = self._fence, self._opening
        self._lines.append(fence)
        done = self._cut()
        self._kind, self._goes_on = "code", True
        self._fence, self._opening = fence, opening
        self._lines, self._chars = [opening], len(opening)
        return done

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._chars += len(line)
        self._is_after_blank = False

    def _cut(self) -> list[Block]:
        """End the current block and return it."""
        lines, kind, goes_on = self._lines, self._kind, self._goes_on
        self._lines, self._chars, self._kind, self._goes_on = [], 0, "text", False
        self._fence, self._is_after_blank = "", False
        if kind == "code" and goes_on and len(lines) <= 2:
            return []  # it ended where the part before was cut
        text = "\n".join(lines).strip("\n")
        return [Block(kind, text, goes_on)] if text.strip() else []


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
