"""How many connections a server keeps open: those that have proved who they are, and a few that have not.

Whoever has not is dropped after a while, and the oldest of them at once where there are too many: idle
strangers cannot keep out those who know the token. What counts as a proof is the server's to say. Knows
no transport.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from laneway.core.ports import Clock

log = logging.getLogger(__name__)


class ConnectionLimits:
    """Each connection is an `Arrival` from its first moment to its `leave`."""

    def __init__(
        self, clock: Clock, *, server: str, max_unproven: int, max_proven: int, unproven_s: float
    ) -> None:
        """`server` is its name in the log; `unproven_s` is how long a proof may take."""
        self._clock = clock
        self._server = server
        self._max_unproven = max_unproven
        self._max_proven = max_proven
        self._unproven_s = unproven_s
        # A dict keeps the order in which they came.
        self._unproven: dict[Arrival, Callable[[], None]] = {}
        self._proven: set[Arrival] = set()
        self._is_crowded = False
        self._is_closing = False

    def arrive(self, drop: Callable[[], None]) -> Arrival:
        """A new connection. `drop` breaks it off, and is called at most once."""
        arrival = Arrival(self, drop)
        self.wait_for_proof(arrival)
        return arrival

    def wait_for_proof(self, arrival: Arrival) -> None:
        """From now on it has `unproven_s`; somebody else may have to make room for it."""
        self.forget(arrival)
        if self._is_closing:
            arrival.drop()
            return
        if len(self._unproven) >= self._max_unproven:
            self._warn_once()
            next(iter(self._unproven)).drop()
        elif len(self._unproven) < self._max_unproven // 2:
            self._is_crowded = False
        self._unproven[arrival] = self._clock.after(self._unproven_s, arrival.drop)

    def take(self, arrival: Arrival) -> bool:
        """Count it with the proven ones, if there is room."""
        if arrival in self._proven:
            return True
        if arrival.is_dropped or len(self._proven) >= self._max_proven:
            return False
        self.forget(arrival)
        self._proven.add(arrival)
        return True

    def forget(self, arrival: Arrival) -> None:
        self._proven.discard(arrival)
        stop_clock = self._unproven.pop(arrival, None)
        if stop_clock is not None:
            stop_clock()

    def refuse_unproven(self) -> None:
        """The server ends: those that are there, and those that still come, are not waited for."""
        self._is_closing = True
        for arrival in list(self._unproven):
            arrival.drop()

    def _warn_once(self) -> None:
        """Not for each of them: whoever floods us must not flood the log."""
        if not self._is_crowded:
            self._is_crowded = True
            log.warning(
                "%s has %d connections that said nothing of use yet; the oldest ones make room",
                self._server,
                len(self._unproven),
            )


class Arrival:
    """One connection, as its limits see it."""

    def __init__(self, limits: ConnectionLimits, drop: Callable[[], None]) -> None:
        self.is_dropped = False
        self._limits = limits
        self._drop = drop

    def prove(self) -> bool:
        """It has shown who it is: whether there is room for it. Again is harmless."""
        return self._limits.take(self)

    def rest(self) -> None:
        """Its proof was good for what it did; for more it needs another."""
        if not self.is_dropped:
            self._limits.wait_for_proof(self)

    def leave(self) -> None:
        """It is gone, or somebody else's to count."""
        self._limits.forget(self)

    def drop(self) -> None:
        self.leave()
        if not self.is_dropped:
            self.is_dropped = True
            self._drop()
