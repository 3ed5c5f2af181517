"""The slash commands of a session as an `available_commands_update`."""

from __future__ import annotations

from typing import Any

from laneway.commands import slash
from laneway.core.offers import Offers


def available_commands(offers: Offers) -> dict[str, Any]:
    return {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [
            {"name": command.name, "description": command.description}
            | ({"input": {"hint": command.hint}} if command.hint else {})
            for command in slash.available(offers)
        ],
    }
