"""`BotHealth`: the health line of a bot: one sentence about its connection, told when it changes, and kept.

It goes to standard error, where the bot's user looks, and into the store, where `laneway doctor` reads it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import msgspec

from laneway.base.errors import StoreError
from laneway.core.conversations import ConversationStore

log = logging.getLogger(__name__)

CURSOR = "health:"
"""Begins the name of the cursor that keeps it."""


class HealthLine(msgspec.Struct, frozen=True, kw_only=True):
    """As of its time, in seconds since 1970."""

    is_well: bool
    text: str
    since: float


class BotHealth:
    def __init__(
        self, platform: str, store: ConversationStore, tell: Callable[[str], None], wall: Callable[[], float]
    ) -> None:
        self._platform, self._store, self._tell, self._wall = platform, store, tell, wall
        self.line: HealthLine | None = None

    def is_now(self, text: str, *, is_well: bool) -> None:
        """Tell it, unless it was told last. Blocks shortly: it changes seldom."""
        if self.line is not None and (self.line.text, self.line.is_well) == (text, is_well):
            return
        self.line = HealthLine(is_well=is_well, text=text, since=self._wall())
        self._tell(f"{self._platform}: {text}")
        try:
            self._store.set_cursor(CURSOR + self._platform, msgspec.json.encode(self.line).decode())
        except StoreError as problem:
            log.warning("the health of %s could not be noted: %s", self._platform, problem)


def tell_on_stderr(line: str) -> None:
    sys.stderr.write(f"laneway: {line}\n")
    sys.stderr.flush()


def last_health(platform: str, store: ConversationStore) -> HealthLine | None:
    """What a process has told last. Raises `StoreError`."""
    kept = store.cursor(CURSOR + platform)
    if kept is None:
        return None
    try:
        return msgspec.json.decode(kept, type=HealthLine)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
