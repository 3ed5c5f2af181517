"""Benchmark of job tools with a long queue: spawning, looking, dispatching, memory.

The server is the real `laneway mcp`, ten real workers run and 1,000 jobs wait. Spawns are paced, so that
they meet the server's own look at all jobs every few seconds; each of them dispatches as well.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

from bench.jobs_server import HANG, JobServer, job_server, timed
from bench.processes import resident_kb
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section, middle, spread_of

QUEUED = 1_000
CALLS_PER_S = 20
SPAWN_P99_MS = Goal(100.0, of="ours")
LOOKS = 30
Run = dict[str, float]


def run(rig: Rig, *, quick: bool = False) -> Section:
    queued, calls, rounds = (100, 60, 1) if quick else (QUEUED, 300, 3)
    runs: list[Run] = [
        rig.measure("bench.jobs_queue", queued, calls, rig.codex, rig.work, rig.home) for _ in range(rounds)
    ]

    def row(what: str, name: str, unit: str = "ms", goal: Goal | None = None) -> Row:
        few, many = f"few {name}", f"many {name}"
        return Row(
            what=what,
            unit=unit,
            base=middle(runs, lambda run: run[few]),
            base_is="10 running, few queued",
            ours=middle(runs, lambda run: run[many]),
            goal=goal,
            digits=1,
            spread=spread_of([run[many] / run[few] for run in runs]),
        )

    with_queue = f"{queued:,} queued, 10 running"
    rows = [
        row(f"codex_spawn p50, {with_queue}", "spawn p50"),
        row(f"codex_spawn p99, {with_queue}", "spawn p99", goal=SPAWN_P99_MS),
        row(f"codex_spawn worst, {with_queue}", "spawn worst"),
        row("codex_list", "list"),
        row("codex_status of a queued job", "status queued"),
        row("codex_status of a running job", "status running"),
        row("one look at all jobs, which dispatches", "look"),
        row("the same, CPU time alone", "look cpu"),
        row("memory of the server", "mb", "MB"),
    ]
    note = (
        f"Jobs in a queue: {calls} calls, {CALLS_PER_S} a second, each answered before the next; medians of"
        f" {rounds} servers, with the lowest and highest ratio to the same server before the queue was filled"
        f" ({calls // 3} calls). The workers are real and hang in a model's answer."
    )
    return Section("Jobs: a long queue", rows, [note], {"runs": runs})


# ── one measurement, in a process of its own ───────────────────────────────


def measure(queued: int, calls: int, rig: Rig) -> Run:
    with job_server(rig) as server:
        running = server.fill_slots()
        few = _looks(server, running[0], calls // 3)
        while len(server.ledger.queued()) < queued:
            server.spawn(HANG)
        many = _looks(server, running[0], calls)
        if len(server.running()) != len(running):
            raise RuntimeError("a worker ended while it was measured")
    return _named("few", few) | _named("many", many)


def _named(when: str, values: Run) -> Run:
    return {f"{when} {name}": value for name, value in values.items()}


def _looks(server: JobServer, running: str, calls: int) -> Run:
    spawned = []
    for _ in range(calls):
        time.sleep(1 / CALLS_PER_S)
        spawned += timed(lambda: server.spawn(HANG), 1)
    cuts = statistics.quantiles(spawned, n=100, method="inclusive")
    waiting = server.ledger.queued()[-1].job_id
    cpu_before = time.process_time()
    look = timed(server.jobs.look, LOOKS)
    cpu_ms = (time.process_time() - cpu_before) * 1e3 / LOOKS
    return {
        "spawn p50": cuts[49],
        "spawn p99": cuts[98],
        "spawn worst": max(spawned),
        "list": statistics.median(timed(lambda: server.call("codex_list"), LOOKS)),
        "status queued": statistics.median(timed(lambda: server.call("codex_status", jobId=waiting), LOOKS)),
        "status running": statistics.median(timed(lambda: server.call("codex_status", jobId=running), LOOKS)),
        "look": statistics.median(look),
        "look cpu": cpu_ms,
        "mb": resident_kb(server.pid) / 1e3,
    }


if __name__ == "__main__":
    queued, calls, codex, work, home = sys.argv[1:]
    child_rig = Rig(codex, Path(home), Path(work), dict(os.environ))
    tell(measure(int(queued), int(calls), child_rig))
