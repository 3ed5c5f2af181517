"""A process of Codex while it runs: what every link to one knows of it, and how an engine keeps one.

An engine has at most one live link, opened when it is first needed. After a death the next call
opens a new one; whether that may happen is the caller's decision (`renews`, `renew`), never ours.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from laneway.base.errors import EngineLost


class Transport(Protocol):
    """What carries the bytes: a supervised child today, a socket tomorrow."""

    def write(self, data: bytes) -> None: ...

    @property
    def backlog_bytes(self) -> int: ...

    @property
    def stderr_tail(self) -> str: ...

    async def stop(self, own_end_s: float = ...) -> Any: ...


Connect = Callable[[Callable[[bytes], None], Callable[[Any], None]], Awaitable[Transport]]
"""Open a transport: told where bytes go and whom to tell of the end."""


class Running(ABC):
    """The part of a link that is about its process. Never revived."""

    def __init__(self) -> None:
        self._transport: Transport | None = None
        self._how: str | None = None
        self._closing = False

    @property
    def is_alive(self) -> bool:
        return self._how is None and not self._closing

    @property
    def ended(self) -> str | None:
        """How the process ended, if it did so by itself."""
        return None if self._closing else self._how

    @property
    def stderr_tail(self) -> str:
        return self._transport.stderr_tail if self._transport else ""

    @property
    def pid(self) -> int | None:
        return getattr(self._transport, "pid", None)

    @abstractmethod
    async def aclose(self) -> None:
        """End the process and everything it started."""


L = TypeVar("L", bound=Running)


class Runner(Generic[L]):
    """The part of an engine that is about its process."""

    def __init__(self, run: Callable[[], Awaitable[L]], diagnose: Callable[[], None] | None) -> None:
        """`run` opens a link; `diagnose` raises what is wrong in words, if a Codex ends as it starts."""
        self.renews = True
        self._run = run
        self._diagnose = diagnose
        self._link: L | None = None
        self._opening = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        return self._link is not None and self._link.is_alive

    @property
    def ended(self) -> str | None:
        return self._link.ended if self._link is not None else None

    @property
    def pid(self) -> int | None:
        return self._link.pid if self._link is not None and self._link.is_alive else None

    def renew(self) -> None:
        if self.ended is not None:
            self._link = None

    async def link(self) -> L:
        """The live link, opened if need be."""
        async with self._opening:
            if self._link is None or not self._link.is_alive:
                if self._link is not None and self._link.ended is not None and not self.renews:
                    raise EngineLost(self._link.ended, self._link.stderr_tail)
                self._link = await self._opened()
            return self._link

    async def _opened(self) -> L:
        try:
            return await self._run()
        except EngineLost:
            if self._diagnose is not None:
                # What is too old, has no such command or is no Codex also just ends: find out, in words.
                await asyncio.to_thread(self._diagnose)
            raise

    async def aclose(self) -> None:
        async with self._opening:
            if self._link is not None:
                await self._link.aclose()
