"""What the fake Discord was asked, and the faults that a test scripts: errors, cuts, held answers."""

from __future__ import annotations

import asyncio

import msgspec


class DiscordCall(msgspec.Struct, kw_only=True):
    """One request, once it was answered. `status` 0: the connection was cut instead."""

    route: str
    path: str
    at: float
    status: int = 0


class HeldDiscordAnswer(msgspec.Struct, kw_only=True):
    """The next call of a route is done, but not answered before `release` is set."""

    route: str
    reached: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    release: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class _CallFault(msgspec.Struct, kw_only=True):
    route: str
    status: int
    takes_effect: bool


class DiscordFaults:
    def __init__(self) -> None:
        self._faults: list[_CallFault] = []
        self._held: list[HeldDiscordAnswer] = []

    def fail(self, route: str, status: int = 502, *, times: int = 1, takes_effect: bool = False) -> None:
        """The next calls of that route get this status; with `takes_effect` after they were carried out."""
        self._faults += [_CallFault(route=route, status=status, takes_effect=takes_effect)] * times

    def cut(self, route: str, *, times: int = 1, takes_effect: bool = False) -> None:
        """The next calls of that route end without an answer."""
        self.fail(route, 0, times=times, takes_effect=takes_effect)

    def clear(self) -> None:
        """All is well again."""
        self._faults.clear()

    def hold(self, route: str) -> HeldDiscordAnswer:
        held = HeldDiscordAnswer(route=route)
        self._held.append(held)
        return held

    def take(self, route: str) -> tuple[int, bool] | None:
        """The status of the next call, and whether it takes effect; none if nothing is scripted."""
        for fault in self._faults:
            if fault.route == route:
                self._faults.remove(fault)
                return fault.status, fault.takes_effect
        return None

    def take_held(self, route: str) -> HeldDiscordAnswer | None:
        for held in self._held:
            if held.route == route:
                self._held.remove(held)
                return held
        return None
