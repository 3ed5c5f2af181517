"""The real Codex with mail: colleagues on a rehearsal, team files, and the door that bridges lead to."""

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
from tests.mail.tools_support import TEAM, Town

ME = "me"
UNKNOWN = "no-such-model"
"""Codex shows such a model all tools at once, those of MCP servers and of subagents, too."""


class Office:
    """A server's inside, once: its sessions, its mail, its door."""

    def __init__(
        self, stage: Stage, colleagues: NamedSessions, room: TeamMail | None, door: LocalServer | None
    ) -> None:
        self.stage = stage
        self.colleagues = colleagues
        self.room = room
        self.door = door

    async def open(self, identity: str, **spec: Any) -> NamedSession:
        given = {"sandbox": "read-only", "approval_policy": "never", **spec}
        opening = Opening(spec=ThreadSpec(cwd=self.stage.rehearsal.work, **given), identity=identity)
        return await self.colleagues.open(ME, opening)

    async def play(self, colleague: NamedSession, *lines: str) -> list[Event]:
        """One turn; its events. Nobody is asked anything."""
        turn = self.colleagues.say(colleague, "\n".join(lines))
        heard = [event async for event in turn.events]
        assert (await turn.result()).status == "completed"
        assert not [event for event in heard if isinstance(event, Asked)]
        return heard

    async def play_below(self, colleague: NamedSession, *lines: str) -> list[FromSubagent]:
        """One turn that starts a subagent; what was heard of that until its turn was done."""
        watching = colleague.session.subscribe()
        self.colleagues.say(colleague, "\n".join(lines))
        heard: list[FromSubagent] = []
        async for event in watching:
            if isinstance(event, FromSubagent):
                heard.append(event)
                if isinstance(event.inner, TurnDone):
                    break
        colleague.session.unsubscribe(watching)
        return heard

    async def audit(self) -> list[dict[str, Any]]:
        await self.colleagues._audit.flush()
        lines = Store(self.stage.state, TEAM).audit.read().lines
        return [line for line in lines if line["event_type"].startswith("atm_")]


class Stage:
    def __init__(self, set_up: Rehearsal, requests: list[dict[str, Any]], town: Town, root: Path) -> None:
        self.rehearsal = set_up
        self.requests = requests
        self.town = town
        self.state = root / "state"

    @property
    def told(self) -> str:
        """What the model was told last by a tool."""
        return str(self.requests[-1]["input"][-1]["output"])

    @asynccontextmanager
    async def office(self, run: Path, *, with_mail: bool = True) -> AsyncIterator[Office]:
        """On a Codex process of its own. Without mail it is as an older Laneway was."""
        engine = self.rehearsal.another_engine()
        room = TeamMail(TEAM, places=lambda: self.town.places) if with_mail else None
        hub = Hub(
            engine,
            LoopClock(),
            timing=Timing(question_s=60),
            tools=ToolBox(room.tools()) if room else None,
            equip=room.equip if room else unequipped,
        )
        colleagues = NamedSessions(hub, StoreRecords(Store(self.state, TEAM)), LoopClock(), summaries=False)
        environment = {"XDG_RUNTIME_DIR": str(run), "XDG_STATE_HOME": str(run / "state")}
        open_bridge = room.serve_bridge if room else None
        async with (
            asyncio.timeout(60),
            colleagues,
            local_socket(colleagues, environment, open_bridge=open_bridge) as door,
        ):
            if room is not None:
                room.open(colleagues, AGENTS, door)
            yield Office(self, colleagues, room, door)


@asynccontextmanager
async def stage(root: Path, model: str = UNKNOWN) -> AsyncIterator[Stage]:
    requests: list[dict[str, Any]] = []

    def spy(request: dict[str, Any]) -> Iterator[Piece]:
        requests.append(request)
        return answer(request)

    town = Town(root / "home")
    town.found(TEAM, "team-lead", "worker")
    async with rehearsal(spy, model) as set_up:
        yield Stage(set_up, requests, town, root)


def bridges(door: LocalServer | None) -> list[int]:
    """The processes that are bridges to this door."""
    assert door is not None
    mark = f"{SOCKET_VARIABLE}={door.path}".encode()
    return [
        pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if mark in environment_of(pid)
    ]


def environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""  # gone meanwhile
