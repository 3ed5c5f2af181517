"""Joins the pieces: an engine, a hub and, for a rehearsal, a scripted model and its home."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from laneway.base.clock import LoopClock
from laneway.codex import binary
from laneway.codex.engine import CodexEngine, codex_engine
from laneway.core.hub import Hub
from laneway.core.session import Timing

LOCAL = "local"
"""The principal of whoever sits at this terminal."""


class Ground(msgspec.Struct, frozen=True):
    """What a command stands on."""

    hub: Hub
    engine: CodexEngine
    work: Path | None
    """A throw-away folder to work in; only in a rehearsal."""


@asynccontextmanager
async def ground(options: Namespace, timing: Timing = Timing()) -> AsyncIterator[Ground]:  # noqa: B008  frozen
    """A hub on the Codex that the options choose; nothing is started before it is needed."""
    # Looked up before anything is set up: a missing Codex is the first thing to say.
    found = binary.find(options.codex_bin)
    async with AsyncExitStack() as stack:
        environment, work = dict(os.environ), None
        if options.rehearse:
            from laneway.rehearsal.home import throwaway_home, work_beside
            from laneway.rehearsal.server import ModelServer

            model = await stack.enter_async_context(ModelServer())
            home = stack.enter_context(throwaway_home(model.base_url))
            environment["CODEX_HOME"], work = str(home), work_beside(home)
        engine = codex_engine(found, environment)
        hub = await stack.enter_async_context(Hub(engine, LoopClock(), timing=timing))
        yield Ground(hub, engine, work)
