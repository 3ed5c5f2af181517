"""Benchmark of the memory of sessions on Claude, awake and asleep, and of our own process. Linux only.

What a process has alone and its share of the rest (PSS), summed over each session's processes.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path

from bench.claude_rig import claude_rig
from bench.processes import GONE, pss_kb, tree
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section
from laneway.base.clock import LoopClock
from laneway.claude import locate
from laneway.claude.awake import AwakeThreads
from laneway.claude.engine import claude_engine
from laneway.core.hub import Hub
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec

IDLE_S = 5.0
"""Long enough to measure what is awake, before it sleeps."""
ASLEEP_MB = Goal(1.0, of="ours")
"""Of each session: what 50 of them take is then not worth a thought."""


def run(rig: Rig, *, quick: bool = False) -> Section:
    sessions = 2 if quick else 8
    with claude_rig(rig) as here:
        kb = here.measure("bench.claude_memory", sessions, here.work)
    mb = {name: value / 1e3 for name, value in kb.items()}
    rows = [
        Row(
            what=f"{sessions} awake sessions, each",
            unit="MB",
            base=mb["claude"] / sessions,
            base_is="its Claude Code alone",
            ours=mb["awake"] / sessions,
            digits=1,
        ),
        Row(
            what=f"{sessions} sessions asleep, each",
            unit="MB",
            base=mb["awake"] / sessions,
            base_is="awake",
            ours=mb["asleep"] / sessions,
            goal=ASLEEP_MB,
            digits=2,
        ),
    ]
    note = (
        "Memory of Claude: sessions that have had one turn. Awake: Claude Code, its guardian, and what our"
        " own process has grown by; asleep: that growth, the processes being gone. Our process itself:"
        f" {mb['bare']:.0f} MB. PSS."
    )
    return Section("Memory of Claude's sessions", rows, [note], {"kb": kb})


async def measure(sessions: int, work: str) -> dict[str, float]:
    binary = locate.find()
    awake = AwakeThreads(idle_s=IDLE_S, max_awake=sessions)
    engine = claude_engine(binary, os.environ, awake=awake)
    async with Hub(engine, LoopClock()) as hub:
        gc.collect()
        bare = pss_kb(os.getpid())
        for _ in range(sessions):
            session = await hub.start("bench", ThreadSpec(cwd=Path(work)))
            await session.say(TurnSpec(parts=(TextPart("%say hello"),))).result()
        claude, others, ours = _now(binary.path)
        while awake.count or len(tree(os.getpid(), binary.path)) > 1:  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.1)
        gc.collect()
        asleep = pss_kb(os.getpid())
    return {"bare": bare, "claude": claude, "awake": claude + others + ours - bare, "asleep": asleep - bare}


def _now(binary: str) -> tuple[float, float, float]:
    """Of Claude Code, of guardians, and of this process."""
    claude = others = 0.0
    for pid, is_claude in tree(os.getpid(), binary).items():
        if pid == os.getpid():
            continue
        try:
            kb = pss_kb(pid)
        except GONE:
            continue
        claude, others = (claude + kb, others) if is_claude else (claude, others + kb)
    return claude, others, pss_kb(os.getpid())


if __name__ == "__main__":
    tell(asyncio.run(measure(int(sys.argv[1]), sys.argv[2])))
