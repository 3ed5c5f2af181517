"""Benchmark of CPU time per delta with 1 and 50 busy sessions, and of the share of each stage.

The same bytes, in reads as large as app-server's under load, go through longer and longer parts of
our pipeline; what a stage adds is its cost. Without a profiler, so nothing is distorted.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

from bench import stub
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section, middle
from laneway.codex.link import Link
from laneway.codex.thread import CodexThread
from laneway.core.model import Event
from laneway.core.tools import ToolResult
from laneway.wire.frames import LineDecoder
from laneway.wire.peer import Peer

SESSIONS = (1, 50)
DELTAS = 60_000
READ_FRAMES = 2
"""Deltas in one read, for a reader that keeps up with app-server at full speed."""
FLAT = Goal(1.25)
"""How much more a delta may cost with 50 sessions than with one and still count as flat.
Compared at one delta per read: otherwise a single session can merge deltas and fifty cannot."""
STAGES = ("loop", "lines", "peer", "link", "translate", "whole")
NAMES = {
    "loop": "a turn of the loop (asyncio)",
    "lines": "lines (wire.frames)",
    "peer": "envelope (wire.peer)",
    "link": "delta and route (codex.link)",
    "translate": "event (codex.thread, codex.translate)",
    "whole": "session, subscription, reader (core)",
}


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 1 if quick else 5
    names = [(side, sessions, READ_FRAMES) for sessions in SESSIONS for side in ("thin", "whole")]
    names += [("whole", sessions, 1) for sessions in SESSIONS]
    names += [(stage, 1, READ_FRAMES) for stage in STAGES[:-1]]
    runs: dict[tuple[str, int, int], list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, results in runs.items():
            results.append(rig.measure("bench.cost", *name))
    cost = {name: middle(results, lambda run: run["us"]) for name, results in runs.items()}
    rows = [
        Row(
            what=f"CPU per delta, {sessions} busy",
            unit="µs",
            base=cost["thin", sessions, READ_FRAMES],
            base_is="thin client",
            ours=cost["whole", sessions, READ_FRAMES],
        )
        for sessions in SESSIONS
    ]
    rows.append(
        Row(
            what="CPU per delta, 50 busy beside 1, unmerged",
            unit="µs",
            base=cost["whole", 1, 1],
            base_is="ours with 1",
            ours=cost["whole", 50, 1],
            goal=FLAT,
        )
    )
    shares = _shares({stage: cost[stage, 1, READ_FRAMES] for stage in STAGES})
    samples = {
        f"{side}, {sessions} busy, {frames} a read": results
        for (side, sessions, frames), results in runs.items()
    }
    return Section("Cost per delta", rows, [shares], {"runs": samples})


def _shares(cost: dict[str, float]) -> str:
    """The time of each stage, as a share of the whole."""
    words, before = [], 0.0
    for stage in STAGES:
        stage_us = cost[stage]
        words.append(f"{NAMES[stage]} {stage_us - before:.2f} µs ({(stage_us - before) / cost['whole']:.0%})")
        before = stage_us
    return "Where a delta's time goes, without the pipe:\n  " + "\n  ".join(words)


def reads(sessions: int, in_one: int) -> list[bytes]:
    """The stream as reads: sessions take turns, several frames in one read."""
    frames = [stub.delta(number % sessions, "word ") for number in range(DELTAS)]
    return [b"".join(frames[at : at + in_one]) for at in range(0, DELTAS, in_one)]


async def through(feed: Callable[[bytes], Any], data: list[bytes]) -> float:
    """Feed one read per iteration of the event loop, as the selector would; returns µs per delta."""
    before = time.process_time()
    for read in data:
        feed(read)
        await asyncio.sleep(0)
    return (time.process_time() - before) / DELTAS * 1e6


async def measure(name: str, sessions: int, in_one: int) -> dict[str, float]:
    data = reads(sessions, in_one)
    feed: Callable[[bytes], Any]
    if name in ("thin", "whole"):
        side = stub.side("ours" if name == "whole" else "thin")
        feed = await side.open(sessions)
        await side.begin()
        us = await through(feed, data)
        for number in range(sessions):
            feed(stub.completed(number))
        await side.finish()
        await side.aclose()
        if sum(text.count(" ") for _, text in side.taken) != DELTAS:
            raise RuntimeError("words were lost")
        return {"us": us}
    return {"us": await through(await _pipeline_up_to(name), data)}


async def _pipeline_up_to(name: str) -> Callable[[bytes], Any]:
    """Our pipeline up to this stage, with nothing after it."""
    match name:
        case "loop":
            return len
        case "lines":
            return LineDecoder().feed
        case "peer":
            return Peer(lambda data: None, on_request=_refuse, on_notification=lambda *arguments: None).feed
    codex = stub.StubCodex()
    link = await Link.open(codex.connect)
    kind = IgnoringThread if name == "link" else CodexThread
    thread = kind(link, IgnoringHost(), await link.call("thread/start", {}))
    thread._translator.begin(stub.turn_id(0))
    return codex.feed


class IgnoringThread(CodexThread):
    """Ignores deltas: only the link's work is measured."""

    def on_delta(self, method: str, delta: Any, frame: bytes) -> None:
        pass


class IgnoringHost:
    """Ignores events: only the thread's work is measured."""

    def on_event(self, event: Event) -> None:
        pass

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult:
        raise NotImplementedError


async def _refuse(method: str, params: Any, request_id: bytes) -> Any:
    raise NotImplementedError


if __name__ == "__main__":
    tell(asyncio.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
