"""Discord's slash commands: those of conversations as Discord lists them, and the words that they mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from laneway.base.plain import label
from laneway.doors.chat.platforms.discord.api import Json
from laneway.doors.chat.ports import ChatCommand

MAX_COMMANDS = 100
OPTION = "text"
_NAME = re.compile(r"[-_a-z0-9]{1,32}")
_STRING = 3
PRIVATE = frozenset({"link", "join"})
"""Commands whose words are shown to their sender alone."""


def registered(commands: Sequence[ChatCommand]) -> list[Json]:
    """As Discord wants them. What it cannot list can still be typed as a message."""
    shown: dict[str, Json] = {}
    for command in commands:
        if not _NAME.fullmatch(command.name) or command.name in shown:
            continue
        what = "the task" if command.kind == "lane" else "what goes with it"
        shown[command.name] = {
            "type": 1,
            "name": command.name,
            "description": label(command.description, 100) or command.name,
            "options": [{"type": _STRING, "name": OPTION, "description": what, "required": False}],
        }
    return list(shown.values())[:MAX_COMMANDS]


def words_of(data: Any) -> str:
    """The words of a slash command, as they could have been typed."""
    given = [str(option.get("value", "")) for option in data.get("options") or []]
    return " ".join([f"/{data['name']}", *given]).strip()
