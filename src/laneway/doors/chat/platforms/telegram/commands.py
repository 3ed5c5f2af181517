"""Telegram's list of commands, which clients complete, made of those of conversations. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from laneway.base.plain import label
from laneway.doors.chat.ports import ChatCommand

MAX_COMMANDS = 100
MAX_DESCRIPTION_CHARS = 256
_NAME = re.compile(r"[a-z0-9_]{1,32}")
START = "/start"
"""Sent by the button that begins a private chat."""


def registered(commands: Sequence[ChatCommand]) -> list[dict[str, Any]]:
    """As `setMyCommands` wants them. What it cannot list can be typed nevertheless."""
    shown: dict[str, dict[str, Any]] = {}
    for command in commands:
        if _NAME.fullmatch(command.name) and command.name not in shown:
            about = label(command.description, MAX_DESCRIPTION_CHARS) or command.name
            shown[command.name] = {"command": command.name, "description": about}
    return list(shown.values())[:MAX_COMMANDS]


def typed(text: str) -> str:
    """The words as conversations know them."""
    return "/help" if text.split(None, 1)[:1] == [START] else text
