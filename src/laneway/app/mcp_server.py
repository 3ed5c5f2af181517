"""`laneway mcp-server` as a running program: engine, hub and the two drop-in tools.

Opened when the client has been answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway import __version__
from laneway.app.local_socket import socket_of
from laneway.app.options import DropInOptions
from laneway.app.runtime import open_runtime, raw_events, script
from laneway.base.clock import LoopClock
from laneway.base.settings import Settings
from laneway.codex import config_keys
from laneway.core.session import Timing
from laneway.doors.mcp.dropin import DropIn
from laneway.doors.mcp.presets import SessionDefaults
from laneway.doors.mcp.stdio import OpenServer


@asynccontextmanager
async def opened(options: DropInOptions, settings: Settings) -> AsyncIterator[OpenServer]:
    """The server on a hub of its own; Codex does not run yet."""
    timing = Timing(retry_s=settings.retry_secs)
    async with open_runtime(options.codex, timing, asks_login=True) as runtime:
        cwd = runtime.work or options.cwd
        defaults = SessionDefaults(
            cwd=cwd,
            base_dir=cwd,
            model=options.model,
            sandbox=options.sandbox,
            approval_policy=options.approval_policy,
            config=options.config,
            config_keys=settings.config_keys,
            rules=config_keys,
            native=raw_events(settings.events),
        )
        dropin = DropIn(runtime.hub, LoopClock(), defaults, script(settings.events))
        async with socket_of(runtime.hub, "mcp-server"):
            yield OpenServer(dropin.server(__version__), runtime.hub.shutdown)
