"""A process of Codex while it runs: what every link to one knows of it, and how an engine keeps one.

An engine has at most one live link, opened when it is first needed, for all who wait for it: a start is
given up only when all of them have gone. After a death the next call opens a new one; whether that may
happen is the caller's decision (`renews`, `renew`), never ours. Only a Codex that fell over another one
as it started is started again by us. Closed is closed for good: whoever waits for a link then, or asks
for one later, is told so.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from laneway.base.disk import is_disk_full
from laneway.base.errors import DiskFull, EngineClosed, EngineLost, EngineSilent

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


class RunningCodex(ABC):
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


L = TypeVar("L", bound=RunningCodex)


class CodexRunner(Generic[L]):
    """The part of an engine that is about its process."""

    def __init__(
        self,
        run: Callable[[], Awaitable[L]],
        diagnose: Callable[[], None] | None,
        home: Path | None = None,
    ) -> None:
        """`run` opens a link; `diagnose` raises what is wrong in words, if a Codex ends as it starts.

        `home` is the folder that this Codex writes to: if it is full, that is why.
        """
        self.renews = True
        self._run = run
        self._diagnose = diagnose
        self._home = home
        self._link: L | None = None
        self._starting: asyncio.Task[L] | None = None
        self._waiting = 0
        """How many want a link and have none yet."""
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        return self._link is not None and self._link.is_alive

    @property
    def ended(self) -> str | None:
        return self._link.ended if self._link is not None else None

    @property
    def ended_saying(self) -> str:
        return self._link.stderr_tail if self._link is not None and self._link.ended is not None else ""

    @property
    def pid(self) -> int | None:
        return self._link.pid if self._link is not None and self._link.is_alive else None

    def renew(self) -> None:
        if self.ended is not None:
            self._link = None

    async def link(self) -> L:
        """The live link, opened if need be."""
        self._waiting += 1
        try:
            return await self._live()
        finally:
            self._waiting -= 1
            if not self._waiting and self._starting is not None:
                # Everybody has given it up, and we were the last.
                self._starting.cancel()
                await asyncio.wait((self._starting,))

    async def _live(self) -> L:
        while True:
            if self._is_closed:
                raise EngineClosed
            if self._starting is None:
                if self._link is not None and self._link.is_alive:
                    return self._link
                if self._link is not None and self._link.ended is not None and not self.renews:
                    raise EngineLost(self._link.ended, self._link.stderr_tail)
                self._starting = asyncio.get_running_loop().create_task(self._opened())
                self._starting.add_done_callback(self._has_started)
            try:
                # Of all who wait, none ends it for the others.
                return await asyncio.shield(self._starting)
            except asyncio.CancelledError:
                caller = asyncio.current_task()
                if caller is None or caller.cancelling():
                    raise
                # Not our caller has gone: it was `aclose`, or those who waited before us and gave up.

    def _has_started(self, starting: asyncio.Task[L]) -> None:
        """Before anybody who waits hears of it: the link is ours, also where nobody is left to take it."""
        self._starting = None
        if not starting.cancelled() and starting.exception() is None:
            self._link = starting.result()

    async def _opened(self) -> L:
        for attempt in range(1, START_TRIES + 1):
            try:
                return await self._run()
            except EngineSilent:
                raise  # it runs, and says nothing: there is nothing more to be learnt, and time was named
            except EngineLost as lost:
                if self._home is not None and await asyncio.to_thread(is_disk_full, self._home):
                    raise DiskFull(str(self._home)) from lost
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
            await asyncio.wait((self._starting,))
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
