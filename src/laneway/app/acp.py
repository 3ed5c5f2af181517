"""`laneway acp` as a running program: engine, hub, database and logins, shared by all ACP clients.

Opened when the first client has been answered, closed once at the end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway.app.local_socket import socket_of
from laneway.app.options import CodexChoice
from laneway.app.runtime import open_runtime
from laneway.base.clock import LoopClock
from laneway.base.ids import new_id
from laneway.base.settings import Settings
from laneway.codex.engine import CodexEngine
from laneway.core.session import Timing
from laneway.doors import lazy_resource
from laneway.doors.acp.accounts.login import EditorLogin
from laneway.doors.acp.agent import Agent
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import PeerChannel
from laneway.doors.acp.handshake import Greeting
from laneway.doors.acp.shared import Shared
from laneway.store.database import Database, database_path
from laneway.store.editor_sessions import EditorSessions
from laneway.wire.peer import Peer


class AcpService:
    """Opens the shared resources for the first client and closes them for all."""

    def __init__(self, choice: CodexChoice, settings: Settings, greeting: Greeting, *, steers: bool) -> None:
        self._choice = choice
        self._settings = settings
        self._steers = steers
        self._greeting = greeting
        self._shared = lazy_resource.LazyResource(self._open)

    async def engage(self, client: EditorClient, peer: Peer) -> Agent:
        """Make an agent for a client, with a principal of its own that owns the client's sessions."""
        shared = await self._shared.wait_open()
        return _agent_for(client)(shared, new_id("editor"), client, PeerChannel(peer))

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Shared]:
        timing = Timing(question_s=self._settings.approval_timeout_secs)
        async with open_runtime(self._choice, timing) as runtime:
            assert isinstance(runtime.engine, CodexEngine)
            path = database_path() if runtime.state is None else runtime.state / "laneway.db"
            with Database(path) as database:
                login = EditorLogin(runtime.engine.offers.accounts, self._greeting.program, os.environ)
                shared = Shared(
                    runtime.hub,
                    runtime.engine,
                    EditorSessions(database),
                    login,
                    LoopClock(),
                    version=self._greeting.version,
                    codex_home=runtime.codex_home,
                    steers=self._steers,
                    is_unstable=self._greeting.is_unstable,
                )
                warm_task = asyncio.ensure_future(shared.warm())
                try:
                    async with socket_of(runtime.hub, "acp"):
                        yield shared
                finally:
                    await login.aclose()
                    # Before requests that wait for Codex are cancelled: none of them may start another one.
                    await runtime.hub.shutdown()
                    warm_task.cancel()
                    await asyncio.gather(warm_task, return_exceptions=True)

    def begin_shutdown(self) -> None:
        """Codex ends soon: clients that disconnect until then need not release their threads."""
        shared = self._shared.open_now
        if shared is not None:
            shared.hub.begin_shutdown()

    async def aclose(self) -> None:
        """End every session, then Codex. Raises the error that kept the resources from opening."""
        await self._shared.aclose()


def _agent_for(client: EditorClient) -> type[Agent]:
    if client.protocol == 1:
        return Agent
    from laneway.doors.acp.v2.agent import AgentV2 as DraftAgent  # loaded late: few clients use the draft

    return DraftAgent
