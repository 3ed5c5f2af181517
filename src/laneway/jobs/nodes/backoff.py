"""How long to leave a machine alone that could not be reached: longer with each failure. Pure."""

from __future__ import annotations

FIRST_S = 0.1
MOST_S = 30.0


class Backoff:
    """`failed` and `succeeded` are told; `left_s` says how long to wait before the next attempt."""

    def __init__(self, first_s: float = FIRST_S, most_s: float = MOST_S) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._failures = 0
        self._not_before = 0.0

    def failed(self, now: float) -> None:
        pause_s = min(self._most_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        self._not_before = now + pause_s

    def succeeded(self) -> None:
        self._failures = 0
        self._not_before = 0.0

    def left_s(self, now: float) -> float:
        return max(0.0, self._not_before - now)
