"""A fresh process of ours on the way to Codex: says when it is answered, and when it has a thread.

Run by `bench.startup`. Starts Codex as `laneway ask` does, before the imports (with `--late` as other
callers do, behind them), and imports what a door would and nothing of the bench, which would count.
"""

from __future__ import annotations

import sys

from laneway.cli import early

if "--late" not in sys.argv:
    early.begin(["ask", "hello"])

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
    found = locate.find()
    engine = codex_engine(found, launched=early.take(found.path))
    async with Hub(engine, LoopClock()) as hub:
        await engine.link()
        print("hello", time.perf_counter() - before, flush=True)
        await hub.start("bench", ThreadSpec(cwd=work))
        print("thread", time.perf_counter() - before, flush=True)


if __name__ == "__main__":
    asyncio.run(greet(Path(sys.argv[1])))
