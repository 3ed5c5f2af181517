"""Markdown as Discord draws it: tables become code blocks, rules become lines. Pure."""

from __future__ import annotations

import re

_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)+\|?\s*$")
_RULE = re.compile(r"^\s{0,3}([-*_])(\s*\1){2,}\s*$")
_FENCE = re.compile(r"^\s{0,12}(`{3,}|~{3,})")
RULE = "———"


def for_discord(text: str) -> str:
    """The text as it is sent. Never longer by more than the fences around its tables."""
    lines = text.split("\n")
    shown: list[str] = []
    fence = ""
    index = 0
    while index < len(lines):
        line = lines[index]
        opened = _FENCE.match(line)
        if opened is not None and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
        elif not fence and _begins_table(lines, index):
            end = _end_of_table(lines, index)
            shown += ["```", *_aligned(lines[index:end]), "```"]
            index = end
            continue
        elif not fence and _RULE.match(line):
            line = RULE
        shown.append(line)
        index += 1
    return "\n".join(shown)


def _begins_table(lines: list[str], index: int) -> bool:
    return "|" in lines[index] and index + 1 < len(lines) and bool(_TABLE_RULE.match(lines[index + 1]))


def _end_of_table(lines: list[str], index: int) -> int:
    end = index + 2
    while end < len(lines) and "|" in lines[end] and lines[end].strip():
        end += 1
    return end


def _aligned(lines: list[str]) -> list[str]:
    """The rows of a table with columns of equal width; as they are if that is longer than what came."""
    rows = [_cells(line) for index, line in enumerate(lines) if index != 1]
    count = max(len(row) for row in rows)
    padded = [row + [""] * (count - len(row)) for row in rows]
    widths = [max(len(row[column]) for row in padded) for column in range(count)]
    drawn = [
        " │ ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in padded
    ]
    drawn.insert(1, "─┼─".join("─" * width for width in widths))
    return drawn


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inner)]
