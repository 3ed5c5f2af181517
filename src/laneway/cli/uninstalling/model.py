"""A remnant of Laneway on this machine: its kind, whether it is removed, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal[
    "service", "registrations", "teams", "sessions", "state", "caches", "copies", "settings", "shell"
]

TITLES: dict[Kind, str] = {
    "service": "The service that runs your bots",
    "registrations": "Registrations in other programs",
    "teams": "Entries in teams",
    "sessions": "Records of sessions and mail (Codex's own transcripts are not touched)",
    "copies": "Copies of other programs' files from before a change",
    "shell": "Completion for your shell",
    "caches": "Caches",
    "state": "State: what you trust, what can be taken back, background jobs, databases",
    "settings": "Settings",
}
"""In the order in which they are removed: changes that can be undone before the records for undoing."""


class Surroundings(msgspec.Struct, frozen=True):
    """The home, folder and environment in which remnants are searched for."""

    home: Path
    folder: Path
    environment: Mapping[str, str]
    with_settings: bool = False
    """Whether the user's own settings are removed, too."""


class Remnant(msgspec.Struct, frozen=True):
    """One thing that Laneway has left on this machine."""

    kind: Kind
    what: str
    """For people; paths in it are short."""
    path: Path
    remove: Callable[[], None] | None = None
    """None: it stays. Raises `LanewayError` or `OSError`."""
    why: str = ""
    """Why it stays and how it can be removed, or what else there is to say."""

    @property
    def goes(self) -> bool:
        return self.remove is not None
