"""Runs the real Codex against a scripted model in a test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from laneway.codex import locate
from laneway.codex.engine import CodexEngine, codex_engine
from laneway.rehearsal.answer import answer
from laneway.rehearsal.home import MODEL, throwaway_home, work_beside
from laneway.rehearsal.server import Answerer, ModelServer
from laneway.testing import first_start


class Rehearsal(msgspec.Struct, frozen=True):
    engine: CodexEngine
    model: ModelServer
    home: Path
    work: Path
    """An empty folder for Codex to work in, outside the system's temp folder."""

    def another_engine(self) -> CodexEngine:
        """A second Codex process on the same home. Close it yourself."""
        return _engine(self.home)


@asynccontextmanager
async def rehearsal(
    answerer: Answerer = answer, model: str = MODEL, extra_config: str = ""
) -> AsyncIterator[Rehearsal]:
    """A Codex home, a work folder, a scripted model and an engine; all gone at the end."""
    async with ModelServer(answerer) as server:
        with throwaway_home(server.base_url, model, extra_config) as home:
            first_start.fill(home)
            engine = _engine(home)
            try:
                yield Rehearsal(engine, server, home, work_beside(home))
            finally:
                await engine.aclose()


def _engine(home: Path) -> CodexEngine:
    environment = {**os.environ, "CODEX_HOME": str(home)}
    return codex_engine(locate.find(), environment)
