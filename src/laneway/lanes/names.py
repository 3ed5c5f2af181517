"""Which names a lane may have: those that are neither malformed, nor a control command, nor an engine's."""

from __future__ import annotations

import re

CONTROL_COMMANDS = frozenset(
    {
        "attach",
        "continue",
        "help",
        "join",
        "lane",
        "lanes",
        "link",
        "new",
        "queue",
        "quit",
        "resume",
        "status",
        "steer",
        "stop",
    }
)
"""The commands of the conversation itself, which come before every lane."""
ENGINE_LANES = frozenset({"claude", "codex", "rehearse"})
"""The lanes that Laneway brings."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
"""What every platform takes as a command; Telegram allows 32 characters."""


def normal(command: object) -> str:
    """The name under which a lane is known. Raises `ValueError` for one that no lane may have."""
    if not isinstance(command, str):
        raise ValueError(f"A lane's command is a text, not {type(command).__name__}.")
    name = command.lower()
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"Lane command {command[:100]!r} is not up to 32 letters, digits, dashes and underscores"
            " (and no slash)."
        )
    if name in CONTROL_COMMANDS:
        raise ValueError(f"Lane command '{name}' is a command of the conversation itself.")
    if name in ENGINE_LANES:
        raise ValueError(f"Lane command '{name}' already registered by Laneway itself.")
    return name
