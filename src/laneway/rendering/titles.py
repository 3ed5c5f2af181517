"""Titles: one line of what somebody said, wants to run, or does, which hides nothing. Pure."""

from __future__ import annotations

from laneway.base.plain import ELLIPSIS, code_label, label

MAX_TITLE_CHARS = 200
"""On one line: clients show titles as labels."""


def title(words: str) -> str:
    """One line of prose that hides nothing, cut where it says so."""
    first, is_all = _first_line(words)
    shown = label(first, MAX_TITLE_CHARS)
    return shown if is_all else f"{shown} {ELLIPSIS}"


def code_title(words: str) -> str:
    """The same of a command, a path or the name of a tool."""
    first, is_all = _first_line(words)
    shown = code_label(first, MAX_TITLE_CHARS)
    return shown if is_all else f"{shown} {ELLIPSIS}"


def _first_line(words: str) -> tuple[str, bool]:
    """And whether it is all that can be shown on one line."""
    first, _, rest = words.strip().partition("\n")
    return first.strip(), not rest
