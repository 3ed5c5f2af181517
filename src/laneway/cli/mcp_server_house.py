"""What `laneway mcp-server` stands on, opened when the client has been greeted."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway import __version__
from laneway.base.clock import LoopClock
from laneway.base.settings import Settings
from laneway.cli.compose import ground, raw_events, script
from laneway.core.session import Timing
from laneway.doors.mcp.dropin import DropIn
from laneway.doors.mcp.presets import House
from laneway.doors.mcp.stdio import Behind


@asynccontextmanager
async def opened(
    options: argparse.Namespace, settings: Settings, here: Path, config: dict[str, Any]
) -> AsyncIterator[Behind]:
    """The server on a hub of its own; nothing of Codex runs yet."""
    timing = Timing(retry_s=settings.retry_secs)
    async with ground(options, timing, settings, asks_login=True) as base:
        house = house_of(options, settings, base.work or here, config)
        door = DropIn(base.hub, LoopClock(), house, script(settings.events))
        yield Behind(door.server(__version__), base.hub.shutdown)


def house_of(options: argparse.Namespace, settings: Settings, cwd: Path, config: dict[str, Any]) -> House:
    """What the command line asks for every thread that is started here."""
    sandbox, approval = options.sandbox, options.approval
    if options.yolo:
        sandbox, approval = "danger-full-access", "never"
    elif options.full_auto:
        sandbox, approval = sandbox or "workspace-write", approval or "on-request"
    return House(
        cwd=cwd,
        here=cwd,
        model=options.model,
        sandbox=sandbox,
        approval_policy=approval,
        config=config,
        config_keys=settings.config_keys,
        native=raw_events(settings.events),
    )
