"""Watches running turns for silence: posts a letter when one has sent no event for too long.

Time does not count while the turn is paused: while a question of its is open, or while a lane works to
which it has delegated.
"""

from __future__ import annotations

from collections.abc import Callable

from laneway.core.ports import Clock
from laneway.doors.chat.conversation_letters import SilenceReached
from laneway.doors.chat.options import ChatOptions


class SilenceWatch:
    def __init__(
        self, ticket: str, options: ChatOptions, clock: Clock, post: Callable[[SilenceReached], None]
    ) -> None:
        self._ticket = ticket
        self._options = options
        self._clock = clock
        self._post = post
        self._last = clock.now()
        self._has_command = False
        self._is_paused = False
        self._is_warned = False
        self._cancel: Callable[[], None] | None = None
        self._arm()

    def hear(self, *, has_command: bool) -> None:
        """It has told something; whether a command runs."""
        self._last, self._is_warned = self._clock.now(), False
        if has_command != self._has_command:
            self._has_command = has_command
            self._arm()

    def pause(self, *, is_paused: bool) -> None:
        if is_paused == self._is_paused:
            return
        self._is_paused, self._last, self._is_warned = is_paused, self._clock.now(), False
        self._arm()

    def end(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _limit(self) -> float:
        if self._has_command:
            return self._options.command_silent_s
        return (
            self._options.silent_s if self._is_warned else min(self._options.warn_s, self._options.silent_s)
        )

    def _arm(self) -> None:
        self.end()
        if not self._is_paused:
            left = self._last + self._limit() - self._clock.now()
            self._cancel = self._clock.after(max(0.0, left), self._look)

    def _look(self) -> None:
        """Timers are not moved with every event: this one may have come too early."""
        self._cancel = None
        silent = self._clock.now() - self._last
        if silent + 1e-6 < self._limit():
            self._arm()
            return
        is_over = self._has_command or silent + 1e-6 >= self._options.silent_s
        self._post(SilenceReached(self._ticket, silent, is_over))
        if not is_over:
            self._is_warned = True
            self._arm()
