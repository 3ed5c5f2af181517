"""What the tests of every door stand on: a scripted model, a Codex home, and programs that come and go."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.codex import locate
from laneway.rehearsal.answer import Piece, answer
from laneway.rehearsal.home import throwaway_home, work_beside
from laneway.rehearsal.server import Answerer, ModelServer
from laneway.testing import first_start
from tests.forked import start_laneway

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Of what a program of ours says on one line; larger than any message of the tests."""

Message = dict[str, Any]


class Scene:
    """A scripted model, a Codex home, a folder for state and one to work in."""

    def __init__(self, requests: list[Message], home: Path, state: Path) -> None:
        self.requests = requests
        """What the model was sent, in order."""
        self.home = home
        self.work = work_beside(home)
        self.state = state
        self.environment = {
            **os.environ,
            "CODEX_HOME": str(home),
            "ATM_HOME": str(state),
            "LANEWAY_CODEX_BIN": locate.find().path,
            # Relative to where the tests were started, which is not where servers are.
            "PYTHONPATH": os.pathsep.join(
                os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path
            ),
        }

    async def spawn(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Process:
        """Python with these words, on pipes. Whoever calls ends it."""
        environment, folder = {**self.environment, **(env or {})}, cwd or self.work
        if words[:2] == ("-m", "laneway"):
            return await start_laneway(
                *words[2:],
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=environment,
                cwd=folder,
                limit=MAX_LINE_BYTES,
            )
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environment,
            cwd=folder,
            limit=MAX_LINE_BYTES,
        )

    @property
    def sessions(self) -> Path:
        """Where state lies on disk."""
        return self.state / ".config" / "atm" / "agent-sessions"


@asynccontextmanager
async def scene(
    state: Path, extra_config: str = "", answerer: Answerer = answer
) -> AsyncIterator[tuple[list[Message], Path, Path]]:
    """What a `Scene` is made of: the list of the model's requests, the Codex home, the folder for state."""
    requests: list[Message] = []

    def noted(request: Message) -> Iterator[Piece]:
        requests.append(request)
        return answerer(request)

    async with ModelServer(noted) as model:
        with throwaway_home(model.base_url, extra_config=extra_config) as home:
            first_start.fill(home)
            yield requests, home, state
