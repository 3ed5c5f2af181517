"""The Claude engine of a command, with its locks and, for a rehearsal, a scripted model and its home."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from laneway.app.options import ClaudeChoice
from laneway.base.clock import LoopClock
from laneway.claude import locate
from laneway.claude.awake import AwakeThreads
from laneway.claude.engine import ClaudeEngine, claude_engine
from laneway.core.hub import Hub
from laneway.core.session import Timing
from laneway.store.thread_locks import ThreadLocks


class ClaudePlace(msgspec.Struct, frozen=True):
    """The engine, not started yet, and where it works."""

    engine: ClaudeEngine
    work: Path | None
    """A throw-away folder to work in; only in a rehearsal."""


@asynccontextmanager
async def claude_place(choice: ClaudeChoice) -> AsyncIterator[ClaudePlace]:
    """Raises `BinaryError` if there is no Claude Code. Whoever gets the engine closes it."""
    binary = locate.find(choice.claude_bin, configured=choice.configured_bin)
    async with AsyncExitStack() as stack:
        environment, work, locks = dict(os.environ), None, ThreadLocks()
        if choice.is_rehearsal:
            from laneway.rehearsal.claude_home import throwaway_claude
            from laneway.rehearsal.messages import ClaudeModel

            server = await stack.enter_async_context(ClaudeModel().server())
            folder = stack.enter_context(throwaway_claude(server.origin))
            environment, work = folder.environment(environment), folder.work
            locks = ThreadLocks(folder.state / "locks")
        awake = AwakeThreads(choice.idle_s, choice.max_awake)
        yield ClaudePlace(claude_engine(binary, environment, locks, awake), work)


@asynccontextmanager
async def open_claude(choice: ClaudeChoice, timing: Timing) -> AsyncIterator[Hub]:
    """A hub on Claude alone, for commands that run nothing else."""
    async with claude_place(choice) as place, Hub(place.engine, LoopClock(), timing=timing) as hub:
        yield hub
