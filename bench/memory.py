"""Benchmark of resident memory with 1, 50 and 500 idle sessions: our process beside Codex.

Ours runs on a stub transport; in `used` runs every session has had one turn of 1,000 words, so that
what a turn leaves in memory counts, too. Codex is the real app-server.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path

from bench import stub
from bench.processes import resident_kb
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section
from laneway.codex import locate
from laneway.codex.engine import codex_engine

SESSIONS = (1, 50, 500)
CODEX_THREADS = (1, 50)
WORDS = 1_000
PER_SESSION_KB = Goal(50.0, of="ours")


def run(rig: Rig, *, quick: bool = False) -> Section:
    idle = {n: _kb(rig, "idle", n) for n in SESSIONS}
    used = {n: _kb(rig, "used", n) for n in (1, SESSIONS[-1])}
    codex = {n: _kb(rig, "codex", n) for n in (CODEX_THREADS if not quick else (1, 10))}
    bare = _kb(rig, "bare", 0)
    rows = [
        Row(
            what=f"our process, {sessions} idle session{'s' if sessions > 1 else ''}",
            unit="MB",
            base=bare / 1e3,
            base_is="imports alone",
            ours=kb / 1e3,
            digits=1,
        )
        for sessions, kb in idle.items()
    ]
    theirs = _slope(codex)
    for what, kb in (
        ("per idle session", _slope(idle)),
        ("per idle session that has had a turn", _slope(used)),
    ):
        rows.append(
            Row(
                what=what,
                unit="kB",
                base=theirs,
                base_is="Codex's own per thread",
                ours=kb,
                goal=PER_SESSION_KB,
                digits=1,
            )
        )
    samples: dict[str, object] = {"bare": bare, "idle": idle, "used": used, "codex": codex}
    return Section("Memory (resident)", rows, [], samples)


def _kb(rig: Rig, what: str, sessions: int) -> float:
    return float(rig.measure("bench.memory", what, sessions, rig.work)["kb"])


def _slope(kb: dict[int, float]) -> float:
    """Memory per additional session, between the fewest and the most."""
    fewest, most = min(kb), max(kb)
    return (kb[most] - kb[fewest]) / (most - fewest)


async def ours(sessions: int, *, used: bool) -> float:
    side = stub.Ours()
    feed = await side.open(sessions)
    if used:
        await side.begin()
        for number in range(sessions):
            feed(b"".join(stub.delta(number, "word ") for _ in range(WORDS)) + stub.completed(number))
            await asyncio.sleep(0)
        await side.finish()
        side.taken.clear()
    gc.collect()
    kb = resident_kb(os.getpid())
    await side.aclose()
    return kb


async def codex(threads: int, work: str) -> float:
    """The memory of app-server, with threads that have no settings."""
    engine = codex_engine(locate.find())
    link = await engine.link()
    for _ in range(threads):
        await link.call("thread/start", {"cwd": str(Path(work))})
    assert link.pid is not None
    kb = resident_kb(link.pid)
    await engine.aclose()
    return kb


def main(what: str, sessions: int, work: str) -> None:
    match what:
        case "bare":
            kb = resident_kb(os.getpid())
        case "codex":
            kb = asyncio.run(codex(sessions, work))
        case _:
            kb = asyncio.run(ours(sessions, used=what == "used"))
    tell({"kb": kb})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
