"""The rates of the fake Discord: buckets by route and channel, the limit of the bot, who broke them."""

from __future__ import annotations

import hashlib
import math

import msgspec

from laneway.core.ports import Clock

GLOBAL_PER_S = 50
"""Requests of one bot in a second, without answers to interactions."""


class DiscordRate(msgspec.Struct, frozen=True):
    """So many calls in a window that begins with the first of them."""

    calls: int
    window_s: float


DEFAULT_RATES = {
    "POST /channels/{channel}/messages": DiscordRate(5, 5.0),
    "PATCH /channels/{channel}/messages/{message}": DiscordRate(5, 5.0),
    "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me": DiscordRate(1, 0.25),
    "POST /channels/{channel}/threads": DiscordRate(10, 10.0),
    "POST /channels/{channel}/messages/{message}/threads": DiscordRate(10, 10.0),
    "GET /channels/{channel}/messages": DiscordRate(5, 5.0),
}
OTHERS = DiscordRate(50, 1.0)


class _RateWindow(msgspec.Struct):
    began: float
    used: int = 0
    held_until: float = 0.0


class RateVerdict(msgspec.Struct, frozen=True):
    """Whether a call may pass, and what its answer says about the rate."""

    headers: dict[str, str]
    retry_after_s: float = 0.0
    """0 if it may pass."""
    is_global: bool = False


class DiscordLimits:
    def __init__(self, clock: Clock, rates: dict[str, DiscordRate] | None = None) -> None:
        self._clock = clock
        self.rates = {**DEFAULT_RATES, **(rates or {})}
        self._windows: dict[tuple[str, str], _RateWindow] = {}
        self._global = _RateWindow(began=-math.inf)
        self._scripted: list[tuple[str, float, bool]] = []
        self.told = 0
        """Answers 429 so far."""
        self.broken = 0
        """Calls in a bucket that was told to wait and did not."""

    def hold_next(self, route: str, retry_after_s: float, *, is_global: bool = False) -> None:
        """The next call of that route gets 429, whatever its rate."""
        self._scripted.append((route, retry_after_s, is_global))

    def check(self, route: str, major: str) -> RateVerdict:
        """Count a call."""
        now = self._clock.now()
        rate = self.rates.get(route, OTHERS)
        window = self._windows.setdefault((route, major), _RateWindow(began=-math.inf))
        for held in (window, self._global):
            if now < held.held_until:
                self.broken += 1
                return self._no(route, rate, held.held_until - now, is_global=held is self._global)
        for entry in self._scripted:
            if entry[0] == route:
                self._scripted.remove(entry)
                held = self._global if entry[2] else window
                held.held_until = now + entry[1]
                return self._no(route, rate, entry[1], is_global=entry[2])
        if now >= self._global.began + 1.0:
            self._global = _RateWindow(began=now)
        self._global.used += 1
        if self._global.used > GLOBAL_PER_S:
            self._global.held_until = self._global.began + 1.0
            return self._no(route, rate, self._global.held_until - now, is_global=True)
        if now >= window.began + rate.window_s:
            window.began, window.used = now, 0
        if window.used >= rate.calls:
            window.held_until = window.began + rate.window_s
            return self._no(route, rate, window.held_until - now)
        window.used += 1
        return RateVerdict(
            self._headers(route, rate, rate.calls - window.used, window.began + rate.window_s - now)
        )

    def _no(self, route: str, rate: DiscordRate, wait_s: float, *, is_global: bool = False) -> RateVerdict:
        self.told += 1
        headers = self._headers(route, rate, 0, wait_s)
        headers["Retry-After"] = str(math.ceil(wait_s))
        headers["X-RateLimit-Scope"] = "global" if is_global else "user"
        if is_global:
            headers["X-RateLimit-Global"] = "true"
        return RateVerdict(headers, retry_after_s=wait_s, is_global=is_global)

    def _headers(self, route: str, rate: DiscordRate, left: int, reset_s: float) -> dict[str, str]:
        return {
            "Via": "1.1 google",
            "X-RateLimit-Limit": str(rate.calls),
            "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": f"{self._clock.now() + reset_s:.3f}",
            "X-RateLimit-Reset-After": f"{reset_s:.3f}",
            "X-RateLimit-Bucket": hashlib.sha256(route.encode()).hexdigest()[:16],
        }
