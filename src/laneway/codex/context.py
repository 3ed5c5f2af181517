"""The context of a turn, such as identity and repository, in the form in which Codex accepts it.

Codex sends `additionalContext` to the model when its value changes, and suppresses an
unchanged one even after a compaction has removed it; so the value contains an epoch that
changes with every compaction. Codex truncates long values; we truncate first, with a mark.
"""

from __future__ import annotations

from typing import Any

KEY = "laneway"
MAX_CHARS = 3900
"""Codex truncates at about 4,000 characters; the model never sees the rest."""
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
    """The context for a Codex without `additionalContext`: a developer message before the turn."""
    return [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": text[:MAX_CHARS]}],
        }
    ]
