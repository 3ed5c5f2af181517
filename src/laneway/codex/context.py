"""What the model should know in this turn, in the form that Codex takes it.

Codex sends `additionalContext` to the model when its value changes, and suppresses an
unchanged one even after a compaction has wiped it; so the value carries an epoch that
moves with every compaction. Long values are cut by Codex; we cut first, visibly.
"""

from __future__ import annotations

from typing import Any

KEY = "laneway"
MAX_CHARS = 3900
"""Codex cuts at about 4,000; what it cuts away the model never sees."""
_CUT = "\n[cut]"


def additional_context(text: str, epoch: int) -> dict[str, Any]:
    if not text:
        return {}
    body = f"{text}\n(context {epoch})"
    if len(body) > MAX_CHARS:
        tail = f"{_CUT}\n(context {epoch})"
        body = text[: MAX_CHARS - len(tail)] + tail
    return {KEY: {"kind": "application", "value": body}}


def injected_items(text: str) -> list[dict[str, Any]]:
    """The same for a Codex without `additionalContext`: a developer message before the turn."""
    return [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": text[:MAX_CHARS]}],
        }
    ]
