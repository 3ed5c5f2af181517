"""A server with mail in this process, on a hand-driven engine and real team files; and clients of it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.app.mail import TeamMail
from laneway.base.errors import RemoteError
from laneway.core.named.opening import Opening
from laneway.core.ports import ThreadSpec
from laneway.doors.mcp.mail_resources import ResourcesByScheme
from laneway.doors.mcp.names import AGENTS, Names
from laneway.doors.mcp.server import Connection, McpServer
from laneway.doors.mcp.transcripts import Transcripts
from laneway.testing.engine import HandEngine
from laneway.wire.messages import Raw, encode
from tests.core.named.support import TEAM, Stage, stage
from tests.mail.tools_support import TeamFiles

META = "io.modelcontextprotocol/"
STATELESS = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
Message = dict[str, Any]


class Client:
    """One connection: it asks, and keeps what it is told."""

    def __init__(self, server: McpServer, principal: str) -> None:
        self.heard: list[tuple[str, Message]] = []
        self.connection = Connection(principal, self)
        self._server = server
        self._ids = itertools.count(1)

    def notify(self, method: str, params: Any) -> bool:
        self.heard.append((method, json.loads(encode(params))))
        return True

    async def call(self, method: str, params: Any) -> Any:
        raise AssertionError("mail asks clients nothing")

    async def ask(self, method: str, /, **params: Any) -> Message:
        request_id = str(next(self._ids)).encode()
        raw = Raw(encode(params))
        answer: Message = json.loads(
            encode(await self._server.serve(self.connection, method, raw, request_id))
        )
        return answer

    async def tool(self, name: str, /, **arguments: Any) -> Message:
        return await self.ask("tools/call", name=name, arguments=arguments)

    async def good(self, name: str, /, **arguments: Any) -> Message:
        result = await self.tool(name, **arguments)
        assert "isError" not in result, result
        structured: Message = result["structuredContent"]
        return structured

    async def code(self, name: str, /, **arguments: Any) -> int:
        """The code of a call that must be refused."""
        return (await self.error(name, **arguments)).code

    async def error(self, name: str, /, **arguments: Any) -> RemoteError:
        try:
            result = await self.tool(name, **arguments)
        except RemoteError as error:
            return error
        raise AssertionError(result)


class MailStage:
    """A server, its sessions, its team files."""

    def __init__(self, here: Stage, team_files: TeamFiles, team_mail: TeamMail, server: McpServer) -> None:
        self.here = here
        self.team_files = team_files
        self.team_mail = team_mail
        self.server = server

    def client(self, principal: str = "me") -> Client:
        return Client(self.server, principal)

    async def session(self, identity: str, principal: str = "me") -> str:
        opening = Opening(spec=ThreadSpec(cwd=self.here.root), identity=identity)
        return (await self.here.sessions.open(principal, opening)).agent_id

    async def audit(self) -> list[Message]:
        """The lines about mail, once they are written."""
        await self.here.sessions._audit.flush()
        return [line for line in self.here.audit() if line["event_type"].startswith("atm_")]


@asynccontextmanager
async def mail_stage(
    root: Path, team_files: TeamFiles, names: Names = AGENTS, engine: HandEngine | None = None
) -> AsyncIterator[MailStage]:
    async with stage(root / "state", engine=engine) as here:
        team_mail = TeamMail(TEAM, places=lambda: team_files.places)
        team_mail.open(here.sessions, names, None)
        shelves = ResourcesByScheme(laneway=Transcripts(here.sessions), mail=team_mail.resources)
        info = {"name": "test", "version": "1"}
        server = McpServer(info, team_mail.offers(), resources=shelves, subscriptions=team_mail.subscriptions)
        async with asyncio.timeout(30):
            yield MailStage(here, team_files, team_mail, server)
