"""Benchmark of listing the sessions of a team with thousands of identities: the first time, and again.

The base is the minimum: open and read every registry. Live and closed sessions are measured
separately, because a lock must be checked to know whether a session is live.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.rig import Rig, tell
from bench.table import Goal, Row, Section
from laneway.core.named import listing
from laneway.core.named.records import Record, Status
from laneway.store.listing import SETTLED_S
from laneway.store.records import StoreRecords, entry_of
from laneway.store.registry import RegistryContent
from laneway.store.store import Store

IDENTITIES = 5_000
TEAM = "bench"
ROUNDS = 5
FIRST_MS = Goal(300.0, of="ours")
AGAIN_MS = Goal(150.0, of="ours")


def run(rig: Rig, *, quick: bool = False) -> Section:
    count = IDENTITIES // 10 if quick else IDENTITIES
    rows: list[Row] = []
    samples: dict[str, object] = {}
    for status, kind in (("closed", "closed"), ("active", "left by dead processes")):
        result = rig.measure("bench.listing", count, status)
        samples[status] = result
        for what, goal in (("first", FIRST_MS), ("again", AGAIN_MS)):
            rows.append(
                Row(
                    what=f"a page of {count:,} sessions that are {kind}, {what}",
                    unit="ms",
                    base=result["read_ms"],
                    base_is="opening and reading every registry",
                    ours=result[f"{what}_ms"],
                    goal=goal if status == "closed" else None,
                    digits=0,
                )
            )
    return Section("Lists of sessions", rows, [], samples)


def fill(store: Store, count: int, status: Status) -> None:
    """One session for each identity, written some time ago by a process that has ended."""
    store.layout.folder.mkdir(parents=True)
    store.layout.claims_gate.touch()
    for number in range(count):
        record = Record(
            agent_id=f"agent-{number:016x}",
            identity=f"codex-{number}",
            team=TEAM,
            thread_id=f"01a1e356-6fb3-7d41-a895-{number:012x}",
            repo_root="/work/project",
            repo_name="project",
            branch="main",
            cwd="/work/project",
            last_active=f"2026-11-16T08:{number // 60 % 60:02}:{number % 60:02}.000Z",
            status=status,
            turns=3,
            tokens=12_345,
        )
        store.layout.home(record.identity).mkdir()
        store.layout.registry(record.identity).write_bytes(RegistryContent().put(entry_of(record)).render())
        store.layout.lock(record.identity).touch()
    time.sleep(SETTLED_S + 0.1)  # as old as a file must be before it is cached


def read_all(store: Store) -> float:
    began = time.perf_counter()
    for identity in store.identities():
        Path(store.layout.registry(identity)).read_bytes()
    return time.perf_counter() - began


async def page(records: StoreRecords) -> float:
    began = time.perf_counter()
    view = await records.view()
    listed = listing.page(view.records, {}, "me", listing.Filters(), limit=20)
    took_s = time.perf_counter() - began
    assert len(listed.rows) == 20
    return took_s


def main(count: int, status: Status) -> None:
    with TemporaryDirectory() as folder:
        store = Store(Path(folder), TEAM)
        fill(store, count, status)
        read = statistics.median(read_all(store) for _ in range(ROUNDS))
        first = statistics.median(
            asyncio.run(page(StoreRecords(Store(Path(folder), TEAM)))) for _ in range(ROUNDS)
        )
        records = StoreRecords(store)
        asyncio.run(page(records))
        again = statistics.median(asyncio.run(page(records)) for _ in range(ROUNDS))
    tell({"read_ms": read * 1e3, "first_ms": first * 1e3, "again_ms": again * 1e3})


if __name__ == "__main__":
    assert sys.argv[2] in ("active", "closed")
    main(int(sys.argv[1]), sys.argv[2])  # type: ignore[arg-type]
