"""Texts for users when an engine refuses a request or reports an error."""

from __future__ import annotations

import msgspec

from laneway.base.errors import EngineRefused


def too_old(refusal: EngineRefused) -> str:
    from laneway.base.installed import installed_how

    return (
        f"This Codex is too old for that (it has no {refusal.method}): upgrade it with"
        f" `{installed_how().adding('codex', upgrade=True)}` or `npm install -g @openai/codex`."
    )


def unwrapped_message(message: str) -> str:
    """The sentence in an error message: Codex passes on providers' answers, which often wrap it in JSON."""
    try:
        body = msgspec.json.decode(message) if message.startswith("{") else None
    except (msgspec.DecodeError, RecursionError):
        return message
    inner = body.get("error") if isinstance(body, dict) else None
    for table, key in ((inner, "message"), (body, "message"), (body, "detail")):
        sentence = table.get(key) if isinstance(table, dict) else None
        if isinstance(sentence, str) and sentence.strip():
            return sentence
    return message
