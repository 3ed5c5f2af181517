"""Agents that one test after the other uses, since starting one is most of what a test costs.

`shared.stage()` stands for `stage(tmp_path)` in tests that ask nothing of the process itself: the
model's requests are none yet, the folder to work in is new, `agent()` is a client that has shaken hands
and heard nothing. The Codex home, the folder for state and what other tests left in both are shared.
Each agent ends as every other, when its worker does; after a failure, or where a test leaves a
request open, at once. Whoever kills or restarts something, or needs settings, has a stage of its own.
The fixture `shared` is in `conftest`; its tests run in the worker's own loop.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias

from laneway.rehearsal.answer import Piece, answer
from laneway.rehearsal.server import Answerer
from tests.doors.acp.client import DEADLINE_S, Client
from tests.doors.acp.sockets import Listener, ending_server, started
from tests.doors.acp.support import Stage, ending
from tests.doors.stage import Message, scene

MAX_IDLE = 6
"""Agents of a worker that wait for their next test; each is a Codex, too, and holds one of the 128 watches on
files that Linux gives to a user. Past it the oldest ends."""


Prepare: TypeAlias = Callable[[Stage], None]
"""Writes settings before the first agent starts; a function of a module, so that it is the same one again."""


class Flags(NamedTuple):
    """What agents must have in common to stand for each other."""

    words: tuple[str, ...]
    capabilities: str
    env: tuple[tuple[str, str], ...]
    unstable: tuple[str, ...]
    program: tuple[str, ...]
    kind: type[Client]


class Idle(NamedTuple):
    """An agent that waits for its next test."""

    here: SharedStage
    flags: Flags
    client: Client


class Shared:
    """The stages of one worker, by how they were prepared."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._stages: dict[Prepare | None, SharedStage] = {}
        self._all: list[SharedStage] = []
        self._idle: list[Idle] = []
        """Of all stages, the longest waiting first."""
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def stage(
        self, prepare: Prepare | None = None, *, answerer: Answerer = answer
    ) -> AsyncIterator[SharedStage]:
        """The stage that was once prepared so; none is the plain one."""
        if prepare not in self._stages:
            script = Script()
            here = Stage(*await self._stack.enter_async_context(scene(self._new_folder(), answerer=script)))
            if prepare is not None:
                prepare(here)
            self._stages[prepare] = SharedStage(self._idle, script, here)
            self._all.append(self._stages[prepare])
        here = self._stages[prepare]
        try:
            with here.turn(answerer):
                yield here
        except BaseException:
            del self._stages[prepare]  # who knows what a test that failed has left there
            raise
        while len(self._idle) > MAX_IDLE:
            await self._end_oldest()

    async def aclose(self) -> None:
        try:
            for each in self._all:
                await each.end_listener()
            while self._idle:
                await self._end_oldest()
        finally:
            await self._stack.aclose()

    async def _end_oldest(self) -> None:
        here, _, client = self._idle.pop(0)
        async with ending(client.successor(here.work, here.places)):
            assert client.process.returncode is None, "it has ended while nobody used it"


class Script:
    """The model's answers: those of the test whose turn it is."""

    def __init__(self) -> None:
        self.answerer: Answerer = answer

    def __call__(self, request: Message) -> Iterator[Piece]:
        return self.answerer(request)


class SharedStage(Stage):
    def __init__(self, idle: list[Idle], script: Script, here: Stage) -> None:
        super().__init__(here.requests, here.home, here.state)
        self._idle = idle
        self._script = script
        self._used: set[str] = set()
        self._turns = 0
        self._listener: Listener | None = None
        self._agents_folder = self.work
        self._stays = set(self.work.parent.iterdir())

    @contextmanager
    def turn(self, answerer: Answerer) -> Iterator[None]:
        """Of one test: nothing is left of the others', and the settings are those of all."""
        self._script.answerer = answerer
        self._used.clear()
        self.requests.clear()
        self._turns += 1
        self.work = self._agents_folder.with_name(f"work-{self._turns}")
        for left in set(self.work.parent.iterdir()) - self._stays:
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
        self.work.mkdir(mode=0o700)
        before = self._settings()
        yield
        assert self._settings() == before, "a test that changes settings has a stage of its own"

    def _settings(self) -> tuple[dict[str, str], dict[Path, bytes]]:
        """What every later test would find changed: the environment, config.toml, commands always allowed."""
        files = (self.home / "config.toml", *self.home.glob("rules/*"))
        return dict(self.environment), {file: file.read_bytes() for file in files}

    @asynccontextmanager
    async def agent(
        self,
        *words: str,
        capabilities: Message | None = None,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        greet: bool = True,
        unstable: Collection[str] = (),
        program: tuple[str, ...] = ("-m", "laneway", "acp"),
        kind: type[Client] = Client,
    ) -> AsyncIterator[Client]:
        """An agent with these flags that this test has not used yet. Its sessions are closed at the end."""
        assert greet, "an agent that was not greeted is of no use to the next test"
        assert cwd is None, "every agent was started in the same folder"
        flags = Flags(
            words,
            json.dumps(capabilities, sort_keys=True),
            tuple(sorted((env or {}).items())),
            tuple(unstable),
            program,
            kind,
        )
        client = self._take(flags)
        is_new = client is None
        if client is None:
            client = await self.start(
                *words, env=env, cwd=self._agents_folder, unstable=unstable, program=program, kind=kind
            )
        self._used.add(client.mark)
        async with ending(client, may_go_on=True):
            if is_new:
                await client.initialize(capabilities)
            yield client
        if client.process.returncode is None:
            self._idle.append(Idle(self, flags, client))

    def _take(self, flags: Flags) -> Client | None:
        """The one that was used last: whoever waits longest is the first to be ended."""
        for place, (here, found, client) in reversed(list(enumerate(self._idle))):
            if here is self and found == flags and client.mark not in self._used:
                del self._idle[place]
                return client.successor(self.work, self.places)
        return None

    @asynccontextmanager
    async def listener(self) -> AsyncIterator[Listener]:
        """The server on a socket, which every test of a worker uses that does not end it."""
        if self._listener is None:
            self._listener = await started(self, cwd=self._agents_folder)
        async with asyncio.timeout(DEADLINE_S):
            yield self._listener
        assert self._listener.process.returncode is None, "it has ended"
        self._listener.assert_in_order()

    async def end_listener(self) -> None:
        if self._listener is not None:
            async with ending_server(self._listener):
                pass
