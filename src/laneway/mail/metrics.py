"""Counters of mail delivery for `agent_status`: since the start of this process, over all sessions."""

from __future__ import annotations

import msgspec


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """The counters at one moment."""

    delivered: int = 0
    """Messages that Codex has recorded."""
    redelivered: int = 0
    """Attempts to deliver a message that had been tried before."""
    turns: int = 0
    """Turns that mail started."""
    steers: int = 0
    """Running turns that urgent mail was added to."""
    failed: int = 0
    """Attempts after which the mail stayed unread."""
    refused: int = 0
    """Messages of senders who may not start turns; they stay unread."""
    sessions_ended: int = 0
    """Sessions closed at a lead's request."""
    spooled: int = 0
    """Messages of ours that wait for an inbox that another program has locked."""
    unspooled: int = 0
    """Those that were delivered after such a wait."""
    given_up: int = 0
    """Those that were given up."""
    latency_last_s: float | None = None
    """From the write of the inbox to the start of the turn, where the session was idle."""
    latency_mean_s: float | None = None
    latency_max_s: float | None = None


class Counters:
    """The counters while they count."""

    def __init__(self) -> None:
        self.delivered = self.redelivered = self.turns = self.steers = self.failed = self.refused = 0
        self.sessions_ended = self.spooled = self.unspooled = self.given_up = 0
        self._times = 0
        self._total_s = self._last_s = self._max_s = 0.0

    def record_latency(self, seconds: float) -> None:
        self._times += 1
        self._last_s = seconds
        self._total_s += seconds
        self._max_s = max(self._max_s, seconds)

    def snapshot(self) -> Metrics:
        counted = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        if not self._times:
            return Metrics(**counted)
        mean_s = self._total_s / self._times
        return Metrics(
            **counted, latency_last_s=self._last_s, latency_mean_s=mean_s, latency_max_s=self._max_s
        )
