"""What the process that draws diffs answers with, and its limits."""

from __future__ import annotations

import msgspec

MAX_DIFF_CHARS = 200_000
"""Read of a diff: the pictures have room for a fraction of it."""
DRAW_S = 20.0
"""Of processor time; six pictures take one or two seconds on a small machine."""


class DrawnDiff(msgspec.Struct, frozen=True):
    pictures: tuple[bytes, ...] = ()
    """PNG files; none if it cannot be drawn."""
    is_whole: bool = False
    """Whether everything is in them."""
