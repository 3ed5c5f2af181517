"""Runs the real Claude Code as an engine against a scripted model in a test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from laneway.claude import locate
from laneway.claude.awake import AwakeThreads
from laneway.claude.engine import ClaudeEngine, claude_engine
from laneway.rehearsal.claude_home import ClaudeFolder, throwaway_claude
from laneway.rehearsal.messages import ClaudeModel
from laneway.store.thread_locks import ThreadLocks


class ClaudeRehearsal(msgspec.Struct, frozen=True):
    engine: ClaudeEngine
    model: ClaudeModel
    folder: ClaudeFolder
    environment: dict[str, str]

    @property
    def work(self) -> Path:
        """An empty folder for Claude Code to work in."""
        return self.folder.work

    def another_engine(self, awake: AwakeThreads | None = None) -> ClaudeEngine:
        """A second engine in the same home, as in another process of ours. Close it yourself."""
        locks = ThreadLocks(self.folder.state / "locks")
        return claude_engine(locate.find(), self.environment, locks, awake)


@asynccontextmanager
async def claude_rehearsal(
    variables: Mapping[str, str] | None = None,
    model: ClaudeModel | None = None,
    awake: AwakeThreads | None = None,
) -> AsyncIterator[ClaudeRehearsal]:
    """A home, a work folder, a scripted model and an engine; all gone at the end.

    `variables` are added to the environment; an empty value takes one away.
    """
    model = model or ClaudeModel()
    async with model.server() as server:
        with throwaway_claude(server.origin) as folder:
            environment = folder.environment(os.environ) | {"HOME": str(folder.work.parent)}
            for name, value in (variables or {}).items():
                if value:
                    environment[name] = value
                else:
                    environment.pop(name, None)
            locks = ThreadLocks(folder.state / "locks")
            engine = claude_engine(locate.find(), environment, locks, awake)
            try:
                yield ClaudeRehearsal(engine, model, folder, environment)
            finally:
                await engine.aclose()
