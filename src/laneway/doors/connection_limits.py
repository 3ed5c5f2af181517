"""Limits on a server's open connections: many that have authenticated, and a few that have not yet.

A connection that does not authenticate in time is dropped; when there are too many of them, the oldest is
dropped at once, so that idle connections cannot keep out clients that know the token. The server decides
what counts as proof. Knows no transport.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from laneway.core.ports import Clock

log = logging.getLogger(__name__)


class ConnectionLimits:
    """Counts a server's connections. Each one is an `Arrival` from `arrive` until its `leave`."""

    def __init__(
        self, clock: Clock, *, server: str, max_unproven: int, max_proven: int, unproven_s: float
    ) -> None:
        """`server` is its name in the log; `unproven_s` is the time to authenticate in."""
        self._clock = clock
        self._server = server
        self._max_unproven = max_unproven
        self._max_proven = max_proven
        self._unproven_s = unproven_s
        # A dict keeps the order of arrival.
        self._unproven: dict[Arrival, Callable[[], None]] = {}
        self._proven: set[Arrival] = set()
        self._is_crowded = False
        self._is_closing = False

    def arrive(self, drop: Callable[[], None]) -> Arrival:
        """Count a new connection. `drop` closes it, and is called at most once."""
        arrival = Arrival(self, drop)
        self.wait_for_proof(arrival)
        return arrival

    def wait_for_proof(self, arrival: Arrival) -> None:
        """Give it `unproven_s` from now on; drop the oldest unproven connection if there are too many."""
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
        """Count it as proven; false if there is no room."""
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
        """The server is closing: drop unproven connections, those still to come included."""
        self._is_closing = True
        for arrival in list(self._unproven):
            arrival.drop()

    def _warn_once(self) -> None:
        """Warn once, not for each connection: a flood of connections must not flood the log."""
        if not self._is_crowded:
            self._is_crowded = True
            log.warning(
                "%s has %d connections that said nothing of use yet; the oldest ones make room",
                self._server,
                len(self._unproven),
            )


class Arrival:
    """One connection, as `ConnectionLimits` counts it."""

    def __init__(self, limits: ConnectionLimits, drop: Callable[[], None]) -> None:
        self.is_dropped = False
        self._limits = limits
        self._drop = drop

    def prove(self) -> bool:
        """The client has authenticated; false if there is no room. May be called again."""
        return self._limits.take(self)

    def rest(self) -> None:
        """That proof is used up: the connection must authenticate again within `unproven_s`."""
        if not self.is_dropped:
            self._limits.wait_for_proof(self)

    def leave(self) -> None:
        """Stop counting it: it is closed, or counted elsewhere."""
        self._limits.forget(self)

    def drop(self) -> None:
        self.leave()
        if not self.is_dropped:
            self.is_dropped = True
            self._drop()
