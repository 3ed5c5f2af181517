"""The engine on a scripted `mcp-server`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.base.clock import LoopClock
from laneway.codex.relay import RelayEngine
from laneway.core.hub import Hub
from laneway.core.ports import ThreadSpec
from laneway.core.session import Session, Timing
from laneway.wire.child import Child, Exit

SPEC = ThreadSpec(cwd=Path("/"))


def relay(*flags: str, **bounds: Any) -> RelayEngine:
    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        argv = [sys.executable, "-m", "laneway.testing.old_server", *flags]
        return await Child.spawn(argv, on_stdout=on_bytes, on_end=on_end)

    return RelayEngine(connect, **bounds)


@asynccontextmanager
async def relayed(
    engine: RelayEngine, compose: Callable[[Session], str] = lambda session: "", **timing: Any
) -> AsyncIterator[Hub]:
    async with (
        asyncio.timeout(60),
        Hub(engine, LoopClock(), timing=Timing(**timing), compose=compose) as hub,
    ):
        yield hub
