"""What `laneway acp` stands on, opened when the first client has been greeted and closed once, at the end."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.base.clock import LoopClock
from laneway.base.errors import LanewayError
from laneway.base.ids import new_id
from laneway.cli.compose import ground, settings_for
from laneway.codex.engine import CodexEngine
from laneway.core.session import Timing
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
    """Opens the house for the first client and closes it for all, in one task."""

    def __init__(self, options: argparse.Namespace, greeting: Greeting) -> None:
        self.settings = settings_for(options, Path.cwd())
        self._options = options
        self._greeting = greeting
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[House] = asyncio.get_running_loop().create_future()
        self._keeping: asyncio.Task[None] | None = None

    async def engage(self, client: Client, peer: Peer) -> Agent:
        """An agent of its own for every client; whose sessions are whose is told by the principal."""
        if self._keeping is None:
            self._keeping = asyncio.ensure_future(self._keep())
        house = await asyncio.shield(self._opened)
        return _agent_for(client)(house, new_id("editor"), client, PeerLine(peer))

    async def _keep(self) -> None:
        try:
            async with self._open() as house:
                self._opened.set_result(house)
                await self._closing.wait()
        except LanewayError as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)  # every request says so; the editor shows it

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[House]:
        timing = Timing(question_s=self.settings.approval_timeout_secs)
        async with ground(self._options, timing, self.settings) as base:
            assert isinstance(base.engine, CodexEngine)
            path = database_path() if base.state is None else base.state / "laneway.db"
            with Database(path) as database:
                login = Login(base.engine.link, self._greeting.program, os.environ)
                house = House(
                    base.hub,
                    base.engine,
                    EditorSessions(database),
                    login,
                    LoopClock(),
                    version=self._greeting.version,
                    steers=self._options.steer,
                    is_unstable=self._greeting.is_unstable,
                )
                warming = asyncio.ensure_future(house.warm())
                try:
                    yield house
                finally:
                    warming.cancel()
                    await asyncio.gather(warming, return_exceptions=True)
                    await login.aclose()

    async def aclose(self) -> None:
        """End every session, then Codex. Raises what kept the house from opening."""
        self._closing.set()
        if self._keeping is not None:
            await self._keeping
        if self._opened.done() and self._opened.exception() is not None:
            self._opened.result()


def _agent_for(client: Client) -> type[Agent]:
    if client.protocol == 1:
        return Agent
    from laneway.doors.acp.v2.agent import Agent as DraftAgent  # hardly anybody's

    return DraftAgent
