"""What a person is told when an engine refuses something, or fails."""

from __future__ import annotations

import msgspec

from laneway.base.errors import EngineRefused

_AFTER = {"thread/resume": " If Codex never wrote its transcript, start a new session."}
"""By app-server's method."""


def advice(refused: EngineRefused) -> str:
    """What to do, where the engine's own words do not say it; to be put behind them."""
    return _AFTER.get(refused.method, "")


def too_old(refused: EngineRefused) -> str:
    from laneway.base.installed import installed_how

    return (
        f"This Codex is too old for that (it has no {refused.method}): upgrade it with"
        f" `{installed_how().adding('codex', upgrade=True)}` or `npm install -g @openai/codex`."
    )


def in_words(message: str) -> str:
    """For people: Codex hands on what a provider answered, which often is a sentence wrapped in JSON."""
    try:
        told = msgspec.json.decode(message) if message.startswith("{") else None
    except (msgspec.DecodeError, RecursionError):
        return message
    inner = told.get("error") if isinstance(told, dict) else None
    for table, key in ((inner, "message"), (told, "message"), (told, "detail")):
        words = table.get(key) if isinstance(table, dict) else None
        if isinstance(words, str) and words.strip():
            return words
    return message
