"""Signals that end a server: the first SIGINT or SIGTERM starts an orderly shutdown, a second forces it."""

from __future__ import annotations

import asyncio
import os
import signal

SAME_REQUEST_S = 0.5
"""Within this time a signal of the other kind counts as part of the first one."""


class EndSignals:
    """`with EndSignals(ended):` — the first signal sets the event, the second ends the process at once.

    Claude Code sends SIGINT and a tenth of a second later SIGTERM: that is one request, not two.
    """

    def __init__(self, ended: asyncio.Event) -> None:
        self._ended = ended
        self._first: tuple[int, float] | None = None

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal, number)

    def __exit__(self, *exc: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        now = asyncio.get_running_loop().time()
        self._ended.set()
        if self._first is None:
            self._first = number, now
        elif number == self._first[0] or now - self._first[1] > SAME_REQUEST_S:
            # No matter what hangs: the guardian ends Codex when our pipe to it closes.
            os._exit(128 + number)
