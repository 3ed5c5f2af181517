"""CPU per delta with 1 and with 50 busy sessions, and which part of ours takes how much of it.

The same bytes, in reads as large as app-server's under load, go through ever longer pieces
of our own pipeline; what a piece adds is its cost. No profiler, so nothing is distorted.
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
"""Deltas in one read: what a reader sees that keeps up with app-server at full speed."""
FLAT = Goal(1.25)
"""How much dearer a delta may be with 50 sessions than with one and still count as flat.
Compared at one delta a read: otherwise one session alone can merge and fifty cannot."""
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
        for name, found in runs.items():
            found.append(rig.measure("bench.cost", *name))
    cost = {name: middle(found, lambda run: run["us"]) for name, found in runs.items()}
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
        f"{side}, {sessions} busy, {frames} a read": found for (side, sessions, frames), found in runs.items()
    }
    return Section("Cost per delta", rows, [shares], {"runs": samples})


def _shares(cost: dict[str, float]) -> str:
    """Where the time goes, as shares of the whole."""
    words, before = [], 0.0
    for stage in STAGES:
        here = cost[stage]
        words.append(f"{NAMES[stage]} {here - before:.2f} µs ({(here - before) / cost['whole']:.0%})")
        before = here
    return "Where a delta's time goes, without the pipe:\n  " + "\n  ".join(words)


def reads(sessions: int, in_one: int) -> list[bytes]:
    """The stream as it is read: sessions take turns, some frames in one read."""
    frames = [stub.delta(number % sessions, "word ") for number in range(DELTAS)]
    return [b"".join(frames[at : at + in_one]) for at in range(0, DELTAS, in_one)]


async def through(feed: Callable[[bytes], Any], data: list[bytes]) -> float:
    """Feed one read in each turn of the loop, as the selector would; return µs per delta."""
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
    return {"us": await through(await _piece(name), data)}


async def _piece(name: str) -> Callable[[bytes], Any]:
    """Our pipeline up to one place, with nothing behind it."""
    match name:
        case "loop":
            return len
        case "lines":
            return LineDecoder().feed
        case "peer":
            return Peer(lambda data: None, on_request=_refuse, on_notification=lambda *seen: None).feed
    codex = stub.StubCodex()
    link = await Link.open(codex.connect)
    kind = DeafThread if name == "link" else CodexThread
    thread = kind(link, DeafHost(), await link.call("thread/start", {}))
    thread._translator.begin(stub.turn_id(0))
    return codex.feed


class DeafThread(CodexThread):
    """Leaves a delta where the link has brought it."""

    def on_delta(self, method: str, delta: Any, frame: bytes) -> None:
        pass


class DeafHost:
    """Leaves an event where the thread has brought it."""

    def on_event(self, event: Event) -> None:
        pass

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult:
        raise NotImplementedError


async def _refuse(method: str, params: Any, request_id: bytes) -> Any:
    raise NotImplementedError


if __name__ == "__main__":
    tell(asyncio.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
