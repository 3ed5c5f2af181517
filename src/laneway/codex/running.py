"""A process of Codex while it runs: what every link to one knows of it, and how an engine keeps one.

An engine has at most one live link, opened when it is first needed. After a death the next call
opens a new one; whether that may happen is the caller's decision (`renews`, `renew`), never ours.
Only a Codex that fell over another one as it started is started again by us. Closed is closed for
good: whoever waits for a link then, or asks for one later, is told so.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from laneway.base.errors import EngineClosed, EngineLost

log = logging.getLogger(__name__)

BACKOFF_S = 0.05
START_TRIES = 6
"""Five pauses come to about three seconds: whoever was first has made Codex's database by then."""


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
        self._is_open = False
        """Whether hands were shaken. Before that, whoever opens us is told what went wrong."""

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

    def _log_end(self, program: str) -> None:
        """Every thread hears of it and tells its caller; here are the details for whoever wants them."""
        if not self._closing:
            last_words = self.stderr_tail[-500:].strip() or "none"
            level = logging.WARNING if self._is_open else logging.INFO
            log.log(level, "%s ended: %s; its last words: %s", program, self._how, last_words)

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
        self._starting: asyncio.Task[L] | None = None
        self._is_closed = False

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
            if self._is_closed:
                raise EngineClosed
            if self._link is None or not self._link.is_alive:
                if self._link is not None and self._link.ended is not None and not self.renews:
                    raise EngineLost(self._link.ended, self._link.stderr_tail)
                self._link = await self._started()
            return self._link

    async def _started(self) -> L:
        """As a task of its own, so that whoever closes us need not wait for a Codex that says nothing."""
        self._starting = asyncio.get_running_loop().create_task(self._opened())
        try:
            return await self._starting
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is None or caller.cancelling():
                raise
            raise EngineClosed from None  # it was `aclose` that cancelled it, and not our caller
        finally:
            self._starting = None

    async def _opened(self) -> L:
        for attempt in range(1, START_TRIES + 1):
            try:
                return await self._run()
            except EngineLost as lost:
                if _fell_over_another(lost) and attempt < START_TRIES:
                    log.info("Codex fell over another one that starts in the same home; trying again")
                    await asyncio.sleep(backoff_s(attempt))
                    continue
                if self._diagnose is not None:
                    # What is too old, has no such command or is no Codex also just ends: say it in words.
                    await asyncio.to_thread(self._diagnose)
                raise
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        self._is_closed = True
        if self._starting is not None:
            self._starting.cancel()
        async with self._opening:
            if self._link is not None:
                await self._link.aclose()


def backoff_s(attempt: int) -> float:
    """How long to wait after so many tries in vain."""
    import random  # three milliseconds of start-up for what hardly ever happens

    return BACKOFF_S * float(2**attempt) * random.uniform(0.5, 1.5)


def _fell_over_another(lost: EngineLost) -> bool:
    """Of several that start at once in a fresh home, one makes the database and the others end. Only their
    last words tell; a database that is really broken is told so, too, just three seconds later."""
    return "state runtime" in lost.stderr_tail
