"""Events of a session that its client does not know yet: kept in order until the client knows it.

A thread tells of its start while it is still being opened. Front ends hold that back here, because a
client cannot place an event of a session whose id it has not been given. Bounded: see `add`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from laneway.core.subscription import MUST_ARRIVE

T = TypeVar("T")

MAX_EARLY = 1000
"""Events that may wait: a thread that starts tells one or two for each MCP server of the user."""


class EarlyEvents(Generic[T]):
    def __init__(self) -> None:
        self._items: list[T] = []

    def add(self, item: T) -> bool:
        """Keep it; false if there are too many, and it is lost. What must be acted upon is always kept."""
        if len(self._items) >= MAX_EARLY and not isinstance(item, MUST_ARRIVE):
            return False
        self._items.append(item)
        return True

    def take(self) -> list[T]:
        """All that waits, oldest first."""
        items, self._items = self._items, []
        return items
