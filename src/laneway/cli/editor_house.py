"""What `laneway acp` stands on, opened when the first client has been greeted and closed once, at the end."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.base.clock import LoopClock
from laneway.base.ids import new_id
from laneway.cli.chosen import settings_for
from laneway.cli.compose import ground
from laneway.codex.engine import CodexEngine
from laneway.core.session import Timing
from laneway.doors import keeper
from laneway.doors.acp.accounts.login import Login
from laneway.doors.acp.agent import Agent
from laneway.doors.acp.client import Client
from laneway.doors.acp.house import House
from laneway.doors.acp.line import PeerLine
from laneway.doors.acp.reception import Greeting
from laneway.store.database import Database, database_path
from laneway.store.editor_sessions import EditorSessions
from laneway.wire.peer import Peer


class Keeper:
    """Opens the house for the first client and closes it for all."""

    def __init__(self, options: argparse.Namespace, greeting: Greeting) -> None:
        self.settings = settings_for(options, Path.cwd())
        self._options = options
        self._greeting = greeting
        self._keeper = keeper.Keeper(self._open)

    async def engage(self, client: Client, peer: Peer) -> Agent:
        """An agent of its own for every client; whose sessions are whose is told by the principal."""
        house = await self._keeper.house()
        return _agent_for(client)(house, new_id("editor"), client, PeerLine(peer))

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[House]:
        timing = Timing(question_s=self.settings.approval_timeout_secs)
        async with ground(self._options, timing, self.settings) as base:
            assert isinstance(base.engine, CodexEngine)
            path = database_path() if base.state is None else base.state / "laneway.db"
            with Database(path) as database:
                login = Login(base.engine, self._greeting.program, os.environ)
                house = House(
                    base.hub,
                    base.engine,
                    EditorSessions(database),
                    login,
                    LoopClock(),
                    version=self._greeting.version,
                    codex_home=base.codex_home,
                    steers=self._options.steer,
                    is_unstable=self._greeting.is_unstable,
                )
                warming = asyncio.ensure_future(house.warm())
                try:
                    yield house
                finally:
                    await login.aclose()
                    # Before anything is given up that waits for Codex: a request must not start another.
                    await base.hub.shutdown()
                    warming.cancel()
                    await asyncio.gather(warming, return_exceptions=True)

    def begin_shutdown(self) -> None:
        """Codex ends soon: clients that are sent away until then need not give their threads back to it."""
        house = self._keeper.house_now
        if house is not None:
            house.hub.begin_shutdown()

    async def aclose(self) -> None:
        """End every session, then Codex. Raises what kept the house from opening."""
        await self._keeper.aclose()


def _agent_for(client: Client) -> type[Agent]:
    if client.protocol == 1:
        return Agent
    from laneway.doors.acp.v2.agent import Agent as DraftAgent  # hardly anybody's

    return DraftAgent
