"""Timers of one session: named timers that post a letter, and the time limit of the running turn.

A turn's time runs from its start and stops while a question is open. Decides nothing: a timer that
is due posts its letter.
"""

from __future__ import annotations

from collections.abc import Callable

from laneway.core.letters import Letter, TimedOut
from laneway.core.ports import Clock

_TURN = "turn"


class Timers:
    """Posts letters when their time has come."""

    def __init__(self, clock: Clock, post: Callable[[Letter], None]) -> None:
        self._clock = clock
        self._post = post
        self._running: dict[str, Callable[[], None]] = {}
        self._left_s: dict[str, float] = {}
        self._turn_of: str | None = None
        self._turn_since = 0.0

    def after(self, name: str, seconds: float, letter: Letter) -> None:
        """Post a letter later; a timer of the same name starts anew."""
        self.drop(name)
        self._running[name] = self._clock.after(seconds, lambda: self._post(letter))

    def drop(self, name: str) -> None:
        cancel = self._running.pop(name, None)
        if cancel is not None:
            cancel()

    def drop_all(self) -> None:
        for name in list(self._running):
            self.drop(name)

    def give(self, ticket: str, seconds: float | None) -> None:
        """Set how long the ticket's turn may take in all; None is no limit."""
        if seconds is not None:
            self._left_s[ticket] = seconds

    def forget(self, ticket: str) -> None:
        self._left_s.pop(ticket, None)

    def run(self, ticket: str | None) -> None:
        """Run this ticket's time from now on; None stops the clock."""
        if self._turn_of in self._left_s:
            self._left_s[self._turn_of] -= self._clock.now() - self._turn_since
        self.drop(_TURN)
        self._turn_of, self._turn_since = ticket, self._clock.now()
        if ticket is not None and ticket in self._left_s:
            self.after(_TURN, max(0.0, self._left_s[ticket]), TimedOut(ticket))
