"""Codex's features that Laneway switches on itself; a warning about them is not for users. Pure."""

from __future__ import annotations

import re
from typing import Any

LIVE_EDITS = "apply_patch_streaming_events"
"""Without it an edit is told when it is whole."""
OWN = frozenset({LIVE_EDITS, "default_mode_request_user_input"})
"""The second one only in a rehearsal's own home: there the model may ask a person."""
_WARNING = re.compile(r"Under-development features enabled: ([\w, .-]+?)\. ")


def is_about_ours(message: Any) -> bool:
    """Whether a warning names features of ours and no other. Only the text tells (0.133 to 0.169)."""
    found = _WARNING.match(message) if isinstance(message, str) else None
    return found is not None and OWN.issuperset(name.strip() for name in found[1].split(","))
