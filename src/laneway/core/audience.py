"""Who reads a session's events: its subscribers, and the caller of the turn that runs.

Hands events on and counts what slow readers lost. Called on the engine's reader: nothing waits.
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
    """Events that it could not keep."""

    def push(self, event: Event) -> None: ...

    def close(self) -> None: ...


class Observer(Protocol):
    """Whoever keeps books about a session. Called where things happen: it must not wait."""

    def on_status(self, status: Literal["idle", "busy", "closed"]) -> None: ...

    def on_usage(self, usage: Usage) -> None: ...


class Audience:
    def __init__(self) -> None:
        self._readers: list[Reader] = []
        self._lost_before = 0
        self.turn: Turn | None = None
        """The caller's end of the running turn; none while nobody's, or somebody else's, runs."""

    @property
    def lost(self) -> int:
        """Events that readers were too slow for, those that have left included."""
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
        """Everybody, the turn's caller first."""
        if self.turn is not None:
            self.turn.events.push(event)
        for reader in self._readers:
            try:
                reader.push(event)
            except Exception:
                # A door's mistake in rendering must not keep the session from learning of its own turn.
                reader.lost += 1
                log.exception("a reader failed at %s", type(event).__name__)

    def end_turn(self) -> Turn | None:
        """The running turn is over; return its caller's end."""
        turn, self.turn = self.turn, None
        if turn is not None:
            self._lost_before += turn.events.lost
            turn.events.close()
        return turn

    def dismiss(self, last: Event) -> None:
        """One last event for the subscribers, and the end."""
        for reader in self._readers:
            reader.push(last)
            reader.close()
