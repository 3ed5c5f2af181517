"""One-line titles from prose, commands and paths: shortened, with hidden characters shown. Pure."""

from __future__ import annotations

from laneway.base.plain import ELLIPSIS, code_label, label

MAX_TITLE_CHARS = 200
"""Clients show titles as labels."""


def title(text: str) -> str:
    """The first line of a prose text; an ellipsis marks what is left out."""
    first, is_only = _first_line(text)
    line = label(first, MAX_TITLE_CHARS)
    return line if is_only else f"{line} {ELLIPSIS}"


def code_title(text: str) -> str:
    """The same for a command, a path or the name of a tool."""
    first, is_only = _first_line(text)
    line = code_label(first, MAX_TITLE_CHARS)
    return line if is_only else f"{line} {ELLIPSIS}"


def _first_line(text: str) -> tuple[str, bool]:
    """The first line, and whether it is the only one."""
    first, _, rest = text.strip().partition("\n")
    return first.strip(), not rest
