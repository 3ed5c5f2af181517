"""Numbers with their nouns: `1 turn`, `2 turns`. Pure."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """The number and the noun in its right form; most plurals end in s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"
