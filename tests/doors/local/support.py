"""The local door on sessions with a hand-driven engine, and a visitor who may behave badly."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.doors.local.client import connect
from laneway.doors.local.server import LocalServer
from laneway.doors.local.shapes import EVENT, SNAPSHOT, WATCH, SessionSnapshot, Watched, WatchedEvent
from laneway.wire.peer import Raw
from tests.core.named.support import Stage, stage
from tests.core.support import until


class LocalStage:
    """Named sessions, and the local server through which others reach them."""

    def __init__(self, here: Stage, door: LocalServer, environment: dict[str, str]) -> None:
        self.here = here
        self.door = door
        self.environment = environment


@asynccontextmanager
async def local_stage(
    root: Path, run: Path, *, uid: int | None = None, **options: Any
) -> AsyncIterator[LocalStage]:
    """`run` must be short: a socket's path has little room."""
    environment = {"XDG_RUNTIME_DIR": str(run), "XDG_STATE_HOME": str(run / "state")}
    async with (
        stage(root, **options) as here,
        LocalServer(here.sessions, here.clock, environment=environment, uid=uid) as door,
    ):
        yield LocalStage(here, door, environment)


class Onlooker:
    """Watches a session through the door."""

    def __init__(self) -> None:
        self.snapshots: list[SessionSnapshot] = []
        self.events: list[dict[str, Any]] = []
        self.lost = 0
        self.answer: asyncio.Task[Watched]

    def hear(self, method: str, params: Raw) -> None:
        if method == SNAPSHOT:
            self.snapshots.append(msgspec.json.decode(params, type=SessionSnapshot))
        elif method == EVENT:
            told = msgspec.json.decode(params, type=WatchedEvent)
            self.events.append(told.event)
            self.lost = told.lost

    def has(self, count: int) -> bool:
        """Whether more than so many events were heard."""
        return len(self.events) > count

    @property
    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]


@asynccontextmanager
async def onlooker(path: Path, **which: str) -> AsyncIterator[Onlooker]:
    looking = Onlooker()
    async with connect(path, looking.hear) as visitor:
        looking.answer = asyncio.ensure_future(visitor.call(WATCH, which, reply=Watched))
        try:
            await until(lambda: looking.snapshots or looking.answer.done())
            yield looking
        finally:
            looking.answer.cancel()
            await asyncio.gather(looking.answer, return_exceptions=True)


class Stranger:
    """A connection without manners: sends what it likes, reads when it likes."""

    def __init__(self, path: Path, *, buffer_bytes: int | None = None) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if buffer_bytes is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.sock.connect(str(path))
        self.sock.setblocking(False)
        self._part = b""

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *exc: object) -> None:
        self.sock.close()

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def lines_until(self, is_last: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """All messages up to the one that is waited for; `EOFError` if the door closes before."""
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(20):
            while True:
                *lines, self._part = self._part.split(b"\n")
                for number, line in enumerate(lines):
                    found.append(msgspec.json.decode(line))
                    if is_last(found[-1]):
                        self._part = b"\n".join([*lines[number + 1 :], self._part])
                        return found
                data = await asyncio.get_running_loop().sock_recv(self.sock, 1 << 20)
                if not data:
                    raise EOFError
                self._part += data
