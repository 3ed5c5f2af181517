"""The faults that a test scripts for the calls of a fake service: errors, cuts, held answers."""

from __future__ import annotations

import asyncio

import msgspec


class HeldAnswer(msgspec.Struct, kw_only=True):
    """The next call of that name is done, but not answered before `release` is set."""

    call: str
    reached: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    release: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class CallFault(msgspec.Struct, frozen=True, kw_only=True):
    """`status` 0: the connection is cut instead."""

    call: str
    status: int
    takes_effect: bool
    description: str


class CallFaults:
    """Calls are named as the service does: by their method, or by their route."""

    def __init__(self) -> None:
        self._faults: list[CallFault] = []
        self._held: list[HeldAnswer] = []

    def fail(
        self,
        call: str,
        status: int = 502,
        *,
        times: int = 1,
        takes_effect: bool = False,
        description: str = "Bad Gateway",
    ) -> None:
        """The next calls of that name get this status; with `takes_effect` after they were carried out."""
        fault = CallFault(call=call, status=status, takes_effect=takes_effect, description=description)
        self._faults += [fault] * times

    def cut(self, call: str, *, times: int = 1, takes_effect: bool = False) -> None:
        """The next calls of that name end without an answer."""
        self.fail(call, 0, times=times, takes_effect=takes_effect)

    def clear(self) -> None:
        """All is well again."""
        self._faults.clear()

    def hold(self, call: str) -> HeldAnswer:
        held = HeldAnswer(call=call)
        self._held.append(held)
        return held

    def take(self, call: str) -> CallFault | None:
        """What the next call meets; none if nothing is scripted."""
        for fault in self._faults:
            if fault.call == call:
                self._faults.remove(fault)
                return fault
        return None

    def take_held(self, call: str) -> HeldAnswer | None:
        for held in self._held:
            if held.call == call:
                self._held.remove(held)
                return held
        return None
