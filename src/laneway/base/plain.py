"""Foreign text for a terminal: what others say, without the power to move the cursor.

An escape sequence in a command could hide that very command from whoever is asked to approve it.
"""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Escapes, returns, backspaces, C1 codes, and the marks that turn the direction of text."""


def plain(text: str) -> str:
    """The text with every control character but newline and tab made visible."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
