"""The Claude engine of a command, with its locks and, for a rehearsal, a scripted model and its home."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
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


def make_claude(
    choice: ClaudeChoice, environment: Mapping[str, str] = os.environ, locks: ThreadLocks | None = None
) -> ClaudeEngine:
    """The engine, not started. Raises `BinaryError` if there is no Claude Code."""
    binary = locate.find(choice.claude_bin, configured=choice.configured_bin)
    awake = AwakeThreads(choice.idle_s, choice.max_awake)
    return claude_engine(binary, environment, locks or ThreadLocks(), awake)


@asynccontextmanager
async def claude_place(choice: ClaudeChoice) -> AsyncIterator[ClaudePlace]:
    """Raises `BinaryError` if there is no Claude Code. Whoever gets the engine closes it."""
    if not choice.is_rehearsal:
        yield ClaudePlace(make_claude(choice), None)
        return
    locate.find(choice.claude_bin, configured=choice.configured_bin)  # the first error to report
    from laneway.rehearsal.claude_home import throwaway_claude
    from laneway.rehearsal.messages import ClaudeModel

    async with ClaudeModel().server() as server:
        with throwaway_claude(server.origin) as folder:
            environment = folder.environment(os.environ)
            engine = make_claude(choice, environment, ThreadLocks(folder.state / "locks"))
            yield ClaudePlace(engine, folder.work)


@asynccontextmanager
async def open_claude(choice: ClaudeChoice, timing: Timing) -> AsyncIterator[Hub]:
    """A hub on Claude alone, for commands that run nothing else."""
    async with claude_place(choice) as place, Hub(place.engine, LoopClock(), timing=timing) as hub:
        yield hub
