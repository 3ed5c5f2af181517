"""Shared parts of the models of other mail programs: their interface, errors, JSON and time format."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

Entry = dict[str, Any]
Tell = Callable[[str], None]


class Failed(Exception):
    """The program reports that nothing was sent; or, ATM 0.46, that it will try again later."""


class Dialect(Protocol):
    def append(self, inbox: Path, sender: str, text: str) -> None: ...

    def mark(self, inbox: Path, tell: Tell) -> None:
        """Deliver all unread mail by `tell`, and mark it as read."""


def pretty(thing: object) -> bytes:
    return json.dumps(thing, indent=2, ensure_ascii=False).encode()


def stamp() -> str:
    now = datetime.now(UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"
