"""Starts Codex in a fresh process; prints when `initialize` is answered and when a thread is started.

Run by `bench.startup`. Starts Codex before the imports, as `laneway ask` does (with `--late` after them,
as other callers do). Imports what a front end would and nothing of the bench, which would count.
"""

from __future__ import annotations

import sys

from laneway.app import prestart

if "--late" not in sys.argv:
    prestart.begin(["ask", "hello"])

import asyncio
import time
from pathlib import Path

from laneway.base.clock import LoopClock
from laneway.codex import locate
from laneway.codex.engine import codex_engine
from laneway.core.hub import Hub
from laneway.core.ports import ThreadSpec


async def greet(work: Path) -> None:
    before = time.perf_counter()
    codex = locate.find()
    engine = codex_engine(codex, launched=prestart.take(codex.path))
    async with Hub(engine, LoopClock()) as hub:
        await engine.link()
        print("hello", time.perf_counter() - before, flush=True)
        await hub.start("bench", ThreadSpec(cwd=work))
        print("thread", time.perf_counter() - before, flush=True)


if __name__ == "__main__":
    asyncio.run(greet(Path(sys.argv[1])))
