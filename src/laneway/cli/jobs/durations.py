"""Durations as people write them: `90s`, `30m`, `1h30m`, `2d`. Pure."""

from __future__ import annotations

import argparse
import re

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_DIGITS = 12
_PART = re.compile(rf"([0-9]{{1,{MAX_DIGITS}}})(ms|s|m|h|d)")


def milliseconds(text: str) -> int:
    """The milliseconds of a duration; a number alone is seconds."""
    if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS:
        return int(text) * UNITS_MS["s"]
    if not re.fullmatch(f"(?:{_PART.pattern})+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90s, 30m or 1h30m")
    return sum(int(number) * UNITS_MS[unit] for number, unit in _PART.findall(text))


def days(text: str) -> float:
    """A duration in days; a number alone is days."""
    if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS:
        return float(text)
    return milliseconds(text) / UNITS_MS["d"]
