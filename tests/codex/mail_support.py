"""The real Codex with team mail: sessions on a rehearsal, team files, and the socket of mail bridges."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.app.local_socket import local_socket
from laneway.app.mail import TeamMail
from laneway.base.clock import LoopClock
from laneway.core.hub import Hub, unequipped
from laneway.core.model import Asked, Event, FromSubagent, TurnDone
from laneway.core.named.opening import Opening
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.core.ports import ThreadSpec
from laneway.core.session import Timing
from laneway.core.tools import ToolBox
from laneway.doors.local.bridge_keys import SOCKET_VARIABLE
from laneway.doors.local.server import LocalServer
from laneway.doors.mcp.names import AGENTS
from laneway.rehearsal.answer import Piece, answer
from laneway.store.records import StoreRecords
from laneway.store.store import Store
from laneway.testing.rehearse import Rehearsal, rehearsal
from tests.mail.tools_support import TEAM, TeamFiles

ME = "me"
UNKNOWN = "no-such-model"
"""Codex shows such a model all tools at once, those of MCP servers and of subagents, too."""


class MailServer:
    """The sessions, the mail and the local socket of one server, on one Codex process."""

    def __init__(
        self, stage: Stage, sessions: NamedSessions, mail: TeamMail | None, local_server: LocalServer | None
    ) -> None:
        self.stage = stage
        self.sessions = sessions
        self.mail = mail
        self.local_server = local_server

    async def open(self, identity: str, **spec: Any) -> NamedSession:
        fields = {"sandbox": "read-only", "approval_policy": "never", **spec}
        opening = Opening(spec=ThreadSpec(cwd=self.stage.rehearsal.work, **fields), identity=identity)
        return await self.sessions.open(ME, opening)

    async def play(self, session: NamedSession, *lines: str) -> list[Event]:
        """Run one turn without questions; return its events."""
        turn = self.sessions.say(session, "\n".join(lines))
        events = [event async for event in turn.events]
        assert (await turn.result()).status == "completed"
        assert not [event for event in events if isinstance(event, Asked)]
        return events

    async def play_subagent(self, session: NamedSession, *lines: str) -> list[FromSubagent]:
        """Run one turn that starts a subagent; return the subagent's events until its turn is done."""
        subscription = session.session.subscribe()
        self.sessions.say(session, "\n".join(lines))
        events: list[FromSubagent] = []
        async for event in subscription:
            if isinstance(event, FromSubagent):
                events.append(event)
                if isinstance(event.inner, TurnDone):
                    break
        session.session.unsubscribe(subscription)
        return events

    async def audit(self) -> list[dict[str, Any]]:
        await self.sessions._audit.flush()
        lines = Store(self.stage.state, TEAM).audit.read().lines
        return [line for line in lines if line["event_type"].startswith("atm_")]


class Stage:
    def __init__(
        self, set_up: Rehearsal, requests: list[dict[str, Any]], team_files: TeamFiles, root: Path
    ) -> None:
        self.rehearsal = set_up
        self.requests = requests
        self.team_files = team_files
        self.state = root / "state"

    @property
    def last_tool_output(self) -> str:
        """The last result of a tool, as the model got it."""
        return str(self.requests[-1]["input"][-1]["output"])

    @asynccontextmanager
    async def server(self, run: Path, *, with_mail: bool = True) -> AsyncIterator[MailServer]:
        """Start a server with its own Codex process. Without mail it is like an older Laneway."""
        engine = self.rehearsal.another_engine()
        mail = TeamMail(TEAM, places=lambda: self.team_files.places) if with_mail else None
        hub = Hub(
            engine,
            LoopClock(),
            timing=Timing(question_s=60),
            tools=ToolBox(mail.tools()) if mail else None,
            equip=mail.equip if mail else unequipped,
        )
        sessions = NamedSessions(hub, StoreRecords(Store(self.state, TEAM)), LoopClock(), summaries=False)
        environment = {"XDG_RUNTIME_DIR": str(run), "XDG_STATE_HOME": str(run / "state")}
        open_bridge = mail.serve_bridge if mail else None
        async with (
            asyncio.timeout(60),
            sessions,
            local_socket(sessions, environment, open_bridge=open_bridge) as local_server,
        ):
            if mail is not None:
                mail.open(sessions, AGENTS, local_server)
            yield MailServer(self, sessions, mail, local_server)


@asynccontextmanager
async def stage(root: Path, model: str = UNKNOWN) -> AsyncIterator[Stage]:
    requests: list[dict[str, Any]] = []

    def spy(request: dict[str, Any]) -> Iterator[Piece]:
        requests.append(request)
        return answer(request)

    team_files = TeamFiles(root / "home")
    team_files.create_team(TEAM, "team-lead", "worker")
    async with rehearsal(spy, model) as set_up:
        yield Stage(set_up, requests, team_files, root)


def bridges(local_server: LocalServer | None) -> list[int]:
    """The processes that are bridges to this socket."""
    assert local_server is not None
    mark = f"{SOCKET_VARIABLE}={local_server.path}".encode()
    return [
        pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if mark in environment_of(pid)
    ]


def environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""  # gone meanwhile
