"""Benchmark of the latency that we add to each delta: p50 and p99, with 1 and 50 busy sessions.

Within one process: the time is taken when a frame's bytes are fed in and again when the session's
reader has the text. Frames come as fast as a quick model sends them, each in a read of its own: the
case in which merging saves nothing.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from operator import itemgetter

from bench import stub
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section, middle

WORDS_PER_S = 100
"""Of each session: about twice as fast as today's quick models."""
SESSIONS = (1, 50)
P50_MS = Goal(0.5, of="ours")
P99_MS = Goal(5.0, of="ours")


def run(rig: Rig, *, quick: bool = False) -> Section:
    seconds, rounds = (1.0, 1) if quick else (3.0, 3)
    rows: list[Row] = []
    samples: dict[str, object] = {}
    for sessions in SESSIONS:
        runs: dict[str, list[dict[str, float]]] = {"thin": [], "ours": []}
        for _ in range(rounds):
            for side, results in runs.items():
                results.append(rig.measure("bench.latency", side, sessions, seconds))
        samples[f"{sessions} busy"] = runs
        for name, goal in (("p50", P50_MS), ("p99", P99_MS)):
            thin, ours = (middle(results, itemgetter(name)) for results in runs.values())
            rows.append(
                Row(
                    what=f"added latency {name}, {sessions} busy",
                    unit="ms",
                    base=thin,
                    base_is="thin client",
                    ours=ours,
                    goal=goal,
                    digits=3,
                )
            )
    note = (
        f"Latency: {WORDS_PER_S} words a second in each session, from bytes fed to text in the reader's"
        f" hand. The thin client splits, decodes and queues. Medians of {rounds} runs."
    )
    return Section("Added latency per delta", rows, [note], samples)


async def measure(name: str, sessions: int, seconds: float) -> dict[str, float]:
    side = stub.side(name)
    feed = await side.open(sessions)
    await side.begin()
    fed = await _pace(feed, sessions, seconds)
    for number in range(sessions):
        feed(stub.completed(number))
    await side.finish()
    # Every word is the number of its frame, so a merged text identifies all its frames.
    latencies_ms = [(taken - fed[int(word)]) * 1e3 for taken, text in side.taken for word in text.split()]
    await side.aclose()
    if len(latencies_ms) != len(fed):
        raise RuntimeError(f"{name} lost {len(fed) - len(latencies_ms)} of {len(fed)} words")
    cuts = statistics.quantiles(latencies_ms, n=100, method="inclusive")
    return {"frames": len(fed), "p50": cuts[49], "p99": cuts[98], "worst": max(latencies_ms)}


async def _pace(feed: stub.Feed, sessions: int, seconds: float) -> list[float]:
    """Feed every session its words, evenly spread over time; returns the time of each frame."""
    loop = asyncio.get_running_loop()
    fed: list[float] = []
    total = int(sessions * WORDS_PER_S * seconds)
    done = asyncio.Event()
    first = loop.time() + 0.05
    interval_s = 1 / (sessions * WORDS_PER_S)

    def one(number: int) -> None:
        frame = stub.delta(number % sessions, f"{number} ")
        if number + 1 < total:
            loop.call_at(first + (number + 1) * interval_s, one, number + 1)
        else:
            done.set()
        fed.append(time.perf_counter())
        feed(frame)

    loop.call_at(first, one, 0)
    await done.wait()
    return fed


if __name__ == "__main__":
    tell(asyncio.run(measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
