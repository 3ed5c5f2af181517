"""Starts, shares and restarts the Codex process of an engine: the base classes of links and engines.

An engine has at most one live link, opened at the first call and shared by all who wait for it: a start
is cancelled only when all of them are. After a death the next call opens a new one; whether that may
happen is decided by the caller (`renews`, `renew`). Only a Codex that collided with another one at its
start is started again from here. Closing is final: whoever waits for a link then, or asks for one
later, gets `EngineClosed`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from laneway.base.disk import is_disk_full
from laneway.base.engines import CODEX
from laneway.base.errors import DiskFull, EngineClosed, EngineLost, EngineSilent

log = logging.getLogger(__name__)

BACKOFF_S = 0.05
START_TRIES = 6
"""Five pauses take about three seconds: by then the first process has created Codex's database."""


class Transport(Protocol):
    """Carries the bytes to and from Codex: a supervised child process."""

    def write(self, data: bytes) -> None: ...

    @property
    def backlog_bytes(self) -> int: ...

    @property
    def stderr_tail(self) -> str: ...

    async def stop(self, own_end_s: float = ...) -> Any: ...


Connect = Callable[[Callable[[bytes], None], Callable[[Any], None]], Awaitable[Transport]]
"""Opens a transport, with a function for its bytes and one for its end."""


class LinkBase(ABC):
    """Base of links: the process, and how it ended. Never reopened."""

    def __init__(self) -> None:
        self._transport: Transport | None = None
        self._end_reason: str | None = None
        self._closing = False
        self._is_open = False
        """Whether the handshake was done. Before that, `open` raises what went wrong."""

    @property
    def is_alive(self) -> bool:
        return self._end_reason is None and not self._closing

    @property
    def ended(self) -> str | None:
        """How the process ended, if it did so by itself."""
        return None if self._closing else self._end_reason

    @property
    def stderr_tail(self) -> str:
        return self._transport.stderr_tail if self._transport else ""

    @property
    def pid(self) -> int | None:
        return getattr(self._transport, "pid", None)

    def _log_end(self, program: str) -> None:
        """Log the details; the threads report the end to their callers."""
        if not self._closing:
            last_words = self.stderr_tail[-500:].strip() or "none"
            level = logging.WARNING if self._is_open else logging.INFO
            log.log(level, "%s ended: %s; its last words: %s", program, self._end_reason, last_words)

    @abstractmethod
    async def aclose(self) -> None:
        """End the process and everything it started."""


L = TypeVar("L", bound=LinkBase)


class EngineBase(Generic[L]):
    """Base of engines: opens the link when it is needed, and shares it."""

    backend = "codex"
    name = CODEX
    shares_process = True

    def __init__(
        self,
        open_link: Callable[[], Awaitable[L]],
        diagnose: Callable[[], None] | None,
        home: Path | None = None,
    ) -> None:
        """`open_link` opens a link; `diagnose` raises a readable error if a Codex ends while it starts.

        `home` is the folder that this Codex writes to: if its disk is full, that is the reason.
        """
        self.renews = True
        self._open_link = open_link
        self._diagnose = diagnose
        self._home = home
        self._link: L | None = None
        self._starting: asyncio.Task[L] | None = None
        self._waiters = 0
        """How many callers wait for a link."""
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        return self._link is not None and self._link.is_alive

    @property
    def ended(self) -> str | None:
        return self._link.ended if self._link is not None else None

    @property
    def ended_stderr(self) -> str:
        return self._link.stderr_tail if self._link is not None and self._link.ended is not None else ""

    @property
    def pid(self) -> int | None:
        return self._link.pid if self._link is not None and self._link.is_alive else None

    def renew(self) -> None:
        if self.ended is not None:
            self._link = None

    async def link(self) -> L:
        """The live link, opened if need be."""
        self._waiters += 1
        try:
            return await self._live_link()
        finally:
            self._waiters -= 1
            if not self._waiters and self._starting is not None:
                # All callers were cancelled, this one last.
                self._starting.cancel()
                await asyncio.wait((self._starting,))

    async def _live_link(self) -> L:
        while True:
            if self._is_closed:
                raise EngineClosed
            if self._starting is None:
                if self._link is not None and self._link.is_alive:
                    return self._link
                if self._link is not None and self._link.ended is not None and not self.renews:
                    raise EngineLost(self._link.ended, self._link.stderr_tail)
                self._starting = asyncio.get_running_loop().create_task(self._open_with_retries())
                self._starting.add_done_callback(self._on_started)
            log.debug("a call waits for Codex to start")
            try:
                # One cancelled caller must not cancel it for the others.
                return await asyncio.shield(self._starting)
            except asyncio.CancelledError:
                caller = asyncio.current_task()
                if caller is None or caller.cancelling():
                    raise
                # Not our caller was cancelled, but the start: by `aclose`, or because earlier callers were.

    def _on_started(self, starting: asyncio.Task[L]) -> None:
        """Runs before any waiter: the link is stored even if no caller is left."""
        self._starting = None
        if not starting.cancelled() and starting.exception() is None:
            self._link = starting.result()

    async def _open_with_retries(self) -> L:
        for attempt in range(1, START_TRIES + 1):
            try:
                return await self._open_link()
            except EngineSilent:
                raise  # it runs and does not answer: nothing to diagnose, and the error names the time
            except EngineLost as lost:
                if self._home is not None and await asyncio.to_thread(is_disk_full, self._home):
                    raise DiskFull(str(self._home)) from lost
                if _collided_at_start(lost) and attempt < START_TRIES:
                    log.info("Codex fell over another one that starts in the same home; trying again")
                    await asyncio.sleep(backoff_s(attempt))
                    continue
                if self._diagnose is not None:
                    # A binary that is too old, lacks the command or is not Codex also just exits.
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
    """The pause after so many failed tries."""
    import random  # three milliseconds of start-up, rarely needed

    return BACKOFF_S * float(2**attempt) * random.uniform(0.5, 1.5)


def _collided_at_start(lost: EngineLost) -> bool:
    """Of several that start at once in a fresh home, one creates the database and the others exit. Only their
    stderr says so; a database that is really broken is reported, too, three seconds later."""
    return "state runtime" in lost.stderr_tail
