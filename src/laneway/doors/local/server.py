"""The local server: the unix socket of one serving process and its connections, from opening to shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from laneway.core.ports import Clock
from laneway.doors.connection_limits import ConnectionLimits
from laneway.doors.local import socket_files
from laneway.doors.local.api import LocalApi
from laneway.doors.local.bridge_keys import OpenBridge, Serve
from laneway.doors.local.connection import LocalConnection
from laneway.doors.local.live import LocalSessions
from laneway.wire.peer import Peer

log = logging.getLogger(__name__)

MAX_SERVED = 64
"""Connections that are being served at once: one for each terminal that watches."""
MAX_IDLE = 64
"""Connections without a request; one more replaces the one that has been idle for longest."""
IDLE_S = 30.0
"""Without a request, until a connection is dropped. Our own clients ask at once, and leave when answered."""
MAX_BRIDGES = 1024
"""Bridges at once: of sessions, and of the subagents that they started."""
MAX_BRIDGES_PER_SESSION = 64
"""With the same key: a session's own, and one for each of its subagents. No session crowds out others."""
CLOSE_S = 0.5
"""For clients to read their last answers; a server must be gone within a second of its client."""


class LocalServer:
    """`async with LocalServer(sessions, clock):`; `StoreError` if no folder can be used for its socket."""

    def __init__(
        self,
        sessions: LocalSessions,
        clock: Clock,
        *,
        door: str = "",
        environment: Mapping[str, str] | None = None,
        uid: int | None = None,
        open_bridge: OpenBridge | None = None,
    ) -> None:
        self.path: Path
        self._api = LocalApi(sessions, clock, door)
        self._environment = environment
        self._uid = os.geteuid() if uid is None else uid
        self._open_bridge = open_bridge
        self._connections: set[LocalConnection] = set()
        self._bridge_keys: dict[LocalConnection, str] = {}
        self._limits = ConnectionLimits(
            clock,
            server="the local socket",
            max_unproven=MAX_IDLE,
            max_proven=MAX_SERVED,
            unproven_s=IDLE_S,
        )
        self._server: asyncio.Server

    async def __aenter__(self) -> LocalServer:
        listening, self.path = socket_files.listen(self._environment)
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: LocalConnection(
                self._api, self._uid, self._limits, self._connections.add, self._forget, self._admit_bridge
            ),
            sock=listening,
            backlog=socket_files.BACKLOG,
        )
        # Each server removes stale sockets at its start: killed servers would leave a heap of them.
        socket_files.live_sockets(self._environment)
        log.debug("the local socket is %s", self.path)
        return self

    def _admit_bridge(self, key: str, connection: LocalConnection, peer: Peer) -> Serve | None:
        keys = list(self._bridge_keys.values())
        if (
            self._open_bridge is None
            or len(keys) >= MAX_BRIDGES
            or keys.count(key) >= MAX_BRIDGES_PER_SESSION
        ):
            return None
        serve = self._open_bridge(key, peer)
        if serve is not None:
            self._bridge_keys[connection] = key
        return serve

    def _forget(self, connection: LocalConnection) -> None:
        self._connections.discard(connection)
        self._bridge_keys.pop(connection, None)

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
                await self._api.wait_watches_over()
                await asyncio.gather(*(connection.aclose() for connection in list(self._connections)))
        except TimeoutError:
            log.info("a client of the local socket did not read its last answers")
        finally:
            remaining = list(self._connections)
            for connection in remaining:
                connection.abort()
            await asyncio.gather(*(connection.gone.wait() for connection in remaining))
