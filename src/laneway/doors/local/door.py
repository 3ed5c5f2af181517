"""The door itself: the socket of one serving process, from its opening to its end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from laneway.core.colleagues import Colleagues
from laneway.core.ports import Clock
from laneway.doors.local import places
from laneway.doors.local.counter import Counter
from laneway.doors.local.guests import Guests
from laneway.doors.local.visitor import Visitor

log = logging.getLogger(__name__)

MAX_VISITORS = 64
"""Connections at once: one for each terminal that looks."""
MAX_GUESTS = 1024
"""The same for guests: sessions, and agents that they started."""
CLOSE_S = 0.5
"""For visitors to take what they were told last; a server must be gone within a second of its client."""


class Door:
    """`async with Door(colleagues, clock):`; `StoreError` if there is no place for its socket."""

    def __init__(
        self,
        colleagues: Colleagues,
        clock: Clock,
        *,
        environment: Mapping[str, str] | None = None,
        uid: int | None = None,
        guests: Guests | None = None,
    ) -> None:
        self.path: Path
        self._counter = Counter(colleagues, clock)
        self._environment = environment
        self._uid = os.geteuid() if uid is None else uid
        self._guests = guests
        self._visitors: set[Visitor] = set()
        self._server: asyncio.Server

    async def __aenter__(self) -> Door:
        listening, self.path = places.listen(self._environment)
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: Visitor(self._counter, self._uid, self._admit, self._guests), sock=listening
        )
        # Who opens, sweeps: servers that are killed one after the other would leave a heap.
        places.standing(self._environment)
        log.debug("the local door is %s", self.path)
        return self

    def _admit(self, visitor: Visitor) -> bool:
        self._visitors = {each for each in self._visitors if not each.gone.is_set()}
        is_guest = visitor.guest is not None
        others = [each for each in self._visitors - {visitor} if (each.guest is not None) is is_guest]
        if len(others) >= (MAX_GUESTS if is_guest else MAX_VISITORS):
            return False
        self._visitors.add(visitor)
        return True

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            log.debug("the socket %s was left behind", self.path)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._counter.wait_told()
                await asyncio.gather(*(visitor.aclose() for visitor in self._visitors))
        except TimeoutError:
            log.info("a visitor of the local door did not take its last answers")
        finally:
            for visitor in self._visitors:
                visitor.abort()
            await asyncio.gather(*(visitor.gone.wait() for visitor in self._visitors))
