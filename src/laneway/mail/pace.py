"""Rate limit of one session's mail turns: the deliveries of the last hour, and the backoff after failures."""

from __future__ import annotations

from collections import deque

from laneway.mail.delivery import HOUR_S

BACKOFF_S = 2.0
"""After the first failed attempt; doubled with each further one."""
MAX_BACKOFF_S = 300.0
"""Codex may be back after a while, and nothing else would trigger an attempt."""
MAX_DOUBLINGS = 16


def backoff(failures: int) -> float:
    """Seconds until the next attempt, after so many failures in a row."""
    return min(MAX_BACKOFF_S, BACKOFF_S * 2.0 ** min(failures - 1, MAX_DOUBLINGS))


class Pace:
    """Deliveries and failures of one session. Times are those of one monotonic clock."""

    def __init__(self) -> None:
        self._begun: deque[float] = deque()
        self._failures = 0
        self.not_before = 0.0

    def begun(self, now: float) -> tuple[float, ...]:
        """When mail was delivered during the last hour."""
        while self._begun and self._begun[0] <= now - HOUR_S:
            self._begun.popleft()
        return tuple(self._begun)

    def begin(self, now: float) -> None:
        self._begun.append(now)

    def take_back(self, when: float) -> None:
        """The delivery that began at this time did not take place: do not count it."""
        if when in self._begun:
            self._begun.remove(when)

    def succeed(self) -> None:
        self._failures = 0

    def fail(self, now: float, at_least_s: float = 0.0) -> float:
        """Count a failure; returns the time before which there is no further attempt."""
        self._failures += 1
        self.not_before = now + max(at_least_s, backoff(self._failures))
        return self.not_before
