"""Codex features that Laneway switches on itself, whose warnings are not shown to users. Pure."""

from __future__ import annotations

import re
from typing import Any

LIVE_EDITS = "apply_patch_streaming_events"
"""Without it an edit is reported only when it is complete."""
OWN = frozenset({LIVE_EDITS, "default_mode_request_user_input"})
"""The second one only in a rehearsal's own home, where the model may ask a person."""
_WARNING = re.compile(r"Under-development features enabled: ([\w, .-]+?)\. ")


def is_about_own_features(message: Any) -> bool:
    """Whether a warning names only features of ours. Only its text says so (0.133 to 0.169)."""
    match = _WARNING.match(message) if isinstance(message, str) else None
    return match is not None and OWN.issuperset(name.strip() for name in match[1].split(","))
