"""The rates of the fake Telegram: each chat, all chats, scripted waits, and who did not keep to them."""

from __future__ import annotations

import math

import msgspec

from laneway.core.ports import Clock


class BotApiRate(msgspec.Struct, frozen=True):
    """So many calls within any window of so many seconds."""

    calls: int
    window_s: float


PRIVATE_RATE = BotApiRate(5, 4.0)
"""More than one in a second is taken for a short time."""
GROUP_RATE = BotApiRate(20, 60.0)
ALL_RATE = BotApiRate(30, 1.0)


class BotApiLimits:
    def __init__(
        self,
        clock: Clock,
        private: BotApiRate = PRIVATE_RATE,
        group: BotApiRate = GROUP_RATE,
        everything: BotApiRate = ALL_RATE,
    ) -> None:
        self._clock = clock
        self.private, self.group, self.everything = private, group, everything
        self._called: dict[int, list[float]] = {}
        self._all: list[float] = []
        self._held: dict[int, float] = {}
        self._all_held = -math.inf
        self._scripted: list[tuple[int, float]] = []
        self.told = 0
        """Answers 429 so far."""
        self.broken = 0
        """Calls for a chat that was to wait and did not."""

    def hold_next(self, chat_id: int, retry_after_s: float) -> None:
        """The next call for that chat gets 429, whatever its rate."""
        self._scripted.append((chat_id, retry_after_s))

    def check(self, chat_id: int, messages: int = 1) -> int:
        """Count a call that sends so many messages. Returns how long it must wait; 0 if it may pass."""
        now = self._clock.now()
        until = max(self._held.get(chat_id, -math.inf), self._all_held)
        if now < until:
            self.broken += 1
            return self._told(until - now)
        for entry in self._scripted:
            if entry[0] == chat_id:
                self._scripted.remove(entry)
                return self._hold(chat_id, entry[1])
        rate = self.private if chat_id > 0 else self.group
        called = [at for at in self._called.get(chat_id, []) if at > now - rate.window_s]
        self._all = [at for at in self._all if at > now - self.everything.window_s]
        if len(called) >= rate.calls:
            return self._hold(chat_id, called[0] + rate.window_s - now)
        if len(self._all) >= self.everything.calls:
            wait = self._told(self._all[0] + self.everything.window_s - now)
            self._all_held = now + wait
            return wait
        # An album is taken as a whole, and all of it counts.
        self._called[chat_id] = [*called, *[now] * messages]
        self._all += [now] * messages
        return 0

    def _hold(self, chat_id: int, wait_s: float) -> int:
        wait = self._told(wait_s)
        self._held[chat_id] = self._clock.now() + wait
        return wait

    def _told(self, wait_s: float) -> int:
        self.told += 1
        return max(1, math.ceil(wait_s))
