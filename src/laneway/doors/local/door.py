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
from laneway.doors.connection_limits import ConnectionLimits
from laneway.doors.local import places
from laneway.doors.local.counter import Counter
from laneway.doors.local.guests import Guests, Serve
from laneway.doors.local.visitor import Visitor
from laneway.wire.peer import Peer

log = logging.getLogger(__name__)

MAX_VISITORS = 64
"""Connections that are being served at once: one for each terminal that looks."""
MAX_IDLE = 64
"""Connections that ask for nothing; one more takes the place of the one that has done so for longest."""
IDLE_S = 30.0
"""Without a request. Ours ask at once, and leave when they are answered."""
MAX_GUESTS = 1024
"""Bridges at once: sessions, and agents that they started."""
MAX_GUESTS_OF_ONE = 64
"""With the same key: a session's own, and one for each of its subagents. Nobody takes the room of others."""
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
        self._guest_keys: dict[Visitor, str] = {}
        self._limits = ConnectionLimits(
            clock,
            server="the local socket",
            max_unproven=MAX_IDLE,
            max_proven=MAX_VISITORS,
            unproven_s=IDLE_S,
        )
        self._server: asyncio.Server

    async def __aenter__(self) -> Door:
        listening, self.path = places.listen(self._environment)
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: Visitor(
                self._counter, self._uid, self._limits, self._visitors.add, self._forget, self._welcome
            ),
            sock=listening,
            backlog=places.BACKLOG,
        )
        # Who opens, sweeps: servers that are killed one after the other would leave a heap.
        places.standing(self._environment)
        log.debug("the local door is %s", self.path)
        return self

    def _welcome(self, key: str, visitor: Visitor, peer: Peer) -> Serve | None:
        keys = list(self._guest_keys.values())
        if self._guests is None or len(keys) >= MAX_GUESTS or keys.count(key) >= MAX_GUESTS_OF_ONE:
            return None
        serve = self._guests(key, peer)
        if serve is not None:
            self._guest_keys[visitor] = key
        return serve

    def _forget(self, visitor: Visitor) -> None:
        self._visitors.discard(visitor)
        self._guest_keys.pop(visitor, None)

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
                await asyncio.gather(*(visitor.aclose() for visitor in list(self._visitors)))
        except TimeoutError:
            log.info("a visitor of the local door did not take its last answers")
        finally:
            left = list(self._visitors)
            for visitor in left:
                visitor.abort()
            await asyncio.gather(*(visitor.gone.wait() for visitor in left))
