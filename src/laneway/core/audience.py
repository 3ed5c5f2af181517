"""Distributes a session's events to its subscribers and to the caller of the running turn.

Counts the events that slow readers lost. Called on the engine's reader, so nothing here waits.
"""

from __future__ import annotations

import logging
from typing import Literal, Protocol

from laneway.core.model import Event, Usage
from laneway.core.turn import Turn

log = logging.getLogger(__name__)


class Reader(Protocol):
    """Takes events on the engine's reader: it must not block, await or raise."""

    lost: int
    """Events that it was too slow to keep."""

    def push(self, event: Event) -> None: ...

    def close(self) -> None: ...


class Observer(Protocol):
    """Is told when a session's status or token usage changes. Called by the session: it must not wait."""

    def on_status(self, status: Literal["idle", "busy", "closed"]) -> None: ...

    def on_usage(self, usage: Usage) -> None: ...


class Audience:
    """The readers of one session's events."""

    def __init__(self) -> None:
        self._readers: list[Reader] = []
        self._lost_before = 0
        self.turn: Turn | None = None
        """The running turn that we asked for; none while no turn runs, or one that we did not start."""

    @property
    def lost(self) -> int:
        """Events that readers were too slow for, including readers that have left."""
        return self._lost_before + sum(reader.lost for reader in self._readers)

    def join(self, reader: Reader) -> None:
        self._readers.append(reader)

    def has(self, reader: Reader) -> bool:
        return reader in self._readers

    def leave(self, reader: Reader) -> None:
        reader.close()
        if reader in self._readers:
            self._readers.remove(reader)
            self._lost_before += reader.lost

    def tell(self, event: Event) -> None:
        """Hand the event to all readers, the turn's caller first."""
        if self.turn is not None:
            self.turn.events.push(event)
        for reader in self._readers:
            try:
                reader.push(event)
            except Exception:
                # A front end that fails to render an event must not keep the session from seeing it.
                reader.lost += 1
                log.exception("a reader failed at %s", type(event).__name__)

    def end_turn(self) -> Turn | None:
        """The running turn is over; return it."""
        turn, self.turn = self.turn, None
        if turn is not None:
            self._lost_before += turn.events.lost
            turn.events.close()
        return turn

    def dismiss(self, last: Event) -> None:
        """Send the last event and close all subscriptions."""
        for reader in self._readers:
            reader.push(last)
            reader.close()
