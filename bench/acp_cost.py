"""Benchmark of CPU time per delta in the ACP agent, from the bytes of app-server to those for the editor.

Without pipes and processes, so that only our own work is left. How much that is depends on how many deltas
arrive in one read: those that arrive together leave together.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from bench import stub
from bench.cost import DELTAS, through
from bench.rig import Rig, tell
from bench.table import Row, Section, middle
from laneway.base.clock import LoopClock
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Hub
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import PeerChannel
from laneway.doors.acp.updates.updates_v1 import UpdatesV1
from laneway.wire.peer import Peer

IN_ONE_READ = (1, 2, 20)


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 1 if quick else 5
    runs: dict[int, list[dict[str, float]]] = {in_one: [] for in_one in IN_ONE_READ}
    for _ in range(rounds):
        for in_one, results in runs.items():
            results.append(rig.measure("bench.acp_cost", in_one))
    rows = [
        Row(
            what=f"CPU per delta in the ACP agent, {in_one} in a read",
            unit="µs",
            base=None,
            base_is="",
            ours=middle(results, lambda run: run["us"]),
        )
        for in_one, results in runs.items()
    ]
    samples = {f"{in_one} in a read": results for in_one, results in runs.items()}
    return Section("ACP agent, cost per delta", rows, [], {"runs": samples})


class Listener:
    """Says when the turn has begun; ignores everything else that is more than an update."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    def on_turn(self, event: Any) -> None:
        self.begun.set()

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


async def measure(in_one: int) -> dict[str, float]:
    sent: list[bytes] = []
    editor = Peer(sent.append, on_request=_refuse, on_notification=lambda *arguments: None)
    codex = stub.StubCodex()
    async with Hub(CodexEngine(codex.connect), LoopClock()) as hub:
        session = await hub.start("bench", ThreadSpec(cwd=Path("/work")))
        updates = UpdatesV1(PeerChannel(editor), EditorClient(), LoopClock())
        listener = Listener()
        updates.open("sess_bench", stub.thread_id(0), "/work", listener)
        session.attach(updates)
        turn = session.say(TurnSpec(parts=(TextPart("go"),)), events=False)
        await listener.begun.wait()
        frames = [stub.delta(0, "word ") for _ in range(DELTAS)]
        us = await through(
            codex.feed, [b"".join(frames[at : at + in_one]) for at in range(0, DELTAS, in_one)]
        )
        codex.feed(stub.completed(0))
        await turn.result()
    words = b"".join(sent).count(b"word ")
    if words != DELTAS:
        raise RuntimeError(f"{words} of {DELTAS} words were sent")
    return {"us": us, "messages": float(len(sent))}


async def _refuse(method: str, params: Any, request_id: bytes) -> Any:
    raise NotImplementedError


if __name__ == "__main__":
    tell(asyncio.run(measure(int(sys.argv[1]))))
