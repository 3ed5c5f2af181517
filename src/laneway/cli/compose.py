"""Joins the pieces: an engine, a hub and, for a rehearsal, a scripted model and its home."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from laneway.base.clock import LoopClock
from laneway.codex import binary
from laneway.codex.engine import CodexEngine, app_server
from laneway.core.hub import Hub
from laneway.core.session import Timing

LOCAL = "local"
"""The principal of whoever sits at this terminal."""


@asynccontextmanager
async def open_hub(options: Namespace, timing: Timing = Timing()) -> AsyncIterator[Hub]:  # noqa: B008  frozen
    """A hub on the Codex that the options choose; nothing is started before it is needed."""
    # Looked up before anything is set up: a missing Codex is the first thing to say.
    found = binary.find(options.codex_bin)
    async with AsyncExitStack() as stack:
        environment = dict(os.environ)
        if options.rehearse:
            from laneway.rehearsal.home import throwaway_home
            from laneway.rehearsal.server import ModelServer

            model = await stack.enter_async_context(ModelServer())
            environment["CODEX_HOME"] = str(stack.enter_context(throwaway_home(model.base_url)))
        engine = CodexEngine(app_server(lambda: found, environment))
        yield await stack.enter_async_context(Hub(engine, LoopClock(), timing=timing))
