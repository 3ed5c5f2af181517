"""Finds the end of tokens and of bracketed values in the text of a JSON or TOML file."""

from __future__ import annotations

import re


def skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The place behind a match that begins here; the same place if there is none."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def end_of_brackets(piece: re.Pattern[str], text: str, at: int) -> int:
    """The place behind the bracket that closes the one here. `piece` matches whole strings and comments."""
    depth = 0
    while (match := piece.match(text, at)) is not None:
        at = match.end()
        depth += (match[0] in "[{") - (match[0] in "]}")
        if depth == 0:
            return at
    raise ValueError("it has brackets that are never closed")
