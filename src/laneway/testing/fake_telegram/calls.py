"""What the fake Telegram was asked, and the faults that a test scripts: errors, cuts, held answers."""

from __future__ import annotations

import asyncio

import msgspec

from laneway.testing.fake_telegram.world import Json


class BotApiCall(msgspec.Struct, kw_only=True):
    """One request, once it was answered. `status` 0: the connection was cut instead."""

    method: str
    params: Json
    at: float
    status: int = 0


class HeldBotApiAnswer(msgspec.Struct, kw_only=True):
    """The next call of a method is done, but not answered before `release` is set."""

    method: str
    reached: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    release: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class _BotApiFault(msgspec.Struct, kw_only=True):
    method: str
    status: int
    takes_effect: bool
    description: str


class BotApiFaults:
    def __init__(self) -> None:
        self._faults: list[_BotApiFault] = []
        self._held: list[HeldBotApiAnswer] = []

    def fail(
        self,
        method: str,
        status: int = 502,
        *,
        times: int = 1,
        takes_effect: bool = False,
        description: str = "Bad Gateway",
    ) -> None:
        """The next calls of that method get this status; with `takes_effect` after they were carried out."""
        fault = _BotApiFault(method=method, status=status, takes_effect=takes_effect, description=description)
        self._faults += [fault] * times

    def cut(self, method: str, *, times: int = 1, takes_effect: bool = False) -> None:
        """The next calls of that method end without an answer."""
        self.fail(method, 0, times=times, takes_effect=takes_effect)

    def hold(self, method: str) -> HeldBotApiAnswer:
        held = HeldBotApiAnswer(method=method)
        self._held.append(held)
        return held

    def take(self, method: str) -> tuple[int, bool, str] | None:
        """Status of the next call, whether it takes effect, what is said; none if none is scripted."""
        for fault in self._faults:
            if fault.method == method:
                self._faults.remove(fault)
                return fault.status, fault.takes_effect, fault.description
        return None

    def take_held(self, method: str) -> HeldBotApiAnswer | None:
        for held in self._held:
            if held.method == method:
                self._held.remove(held)
                return held
        return None
