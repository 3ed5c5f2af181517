"""Watches an engine that retries to reach its model: ends the turn if that goes on without any progress."""

from __future__ import annotations

import msgspec

from laneway.core.letters import Cancel
from laneway.core.model import DELTAS, Activity, Asked, Event, Failure, TurnDone
from laneway.core.timers import Timers
from laneway.core.turn import TurnResult

PROGRESS = frozenset({*DELTAS, Activity, Asked, TurnDone})
"""Events which show that the model was reached, or that the turn is over."""
_TIMER = "retry"


class RetryWatch:
    """Of one session. Called on the engine's reader."""

    def __init__(self, retry_s: float, timers: Timers) -> None:
        """`retry_s`: how long the engine may retry; 0: for ever."""
        self.is_retrying = False
        """Whether the engine retries, without progress so far."""
        self._retry_s = retry_s
        self._timers = timers
        self._last_message = ""

    def on_retry(self, ticket: str, message: str) -> None:
        """The engine retries in the turn of this ticket."""
        if not self._retry_s:
            return
        self._last_message = message
        if not self.is_retrying:
            self.is_retrying = True
            self._timers.after(_TIMER, self._retry_s, Cancel(ticket, "unreachable"))

    def on_event(self, kind: type[Event]) -> None:
        """Called while `is_retrying`: the first progress ends the watch."""
        if kind in PROGRESS:
            self.is_retrying = False
            self._timers.drop(_TIMER)

    def as_failure(self, result: TurnResult, engine_name: str) -> TurnResult:
        """The result of a turn that this watch has stopped: a failure, with what the engine said."""
        failure = Failure(
            kind="unreachable",
            message=f"{engine_name} could not reach the model for {self._retry_s:g} s and was"
            f" stopped, as the setting retry_secs says. It said: {self._last_message}",
        )
        return msgspec.structs.replace(result, status="failed", failure=failure)
