"""Benchmark of the start-up of ACP agents, up to the first text; the agents take turns in each round.

An agent may answer `initialize` before its Codex is ready, so the time to the first session is measured
as well; most of that is Codex's own.
"""

from __future__ import annotations

import statistics

from bench.acp_agents import OFFICIAL, OLDER, OURS, RAW, agents, open_client
from bench.mcp_servers import Server
from bench.rig import Rig
from bench.table import Goal, Row, Section

HALF = Goal(0.5)
"""Of what the official adapter takes."""
STEPS = {
    "initialize": "spawn → initialize answered",
    "new": "initialize → session/new answered",
    "session": "spawn → session/new answered",
    "chunk": "prompt → first chunk",
}
GOALS = {("initialize", OFFICIAL): HALF}


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 3 if quick else 15
    servers = agents(rig)
    samples: dict[str, dict[str, list[float]]] = {name: {step: [] for step in STEPS} for name in servers}
    for number in range(rounds + 1):
        for name, server in servers.items():
            for step, seconds in first_answers(rig, server).items():
                if number:  # the first round warms the disk's cache
                    samples[name][step].append(seconds)
    rows = [
        Row(
            what=what,
            unit="ms",
            base=_ms(samples[base][step]),
            base_is=base,
            ours=_ms(samples[OURS][step]),
            goal=GOALS.get((step, base)),
            digits=0,
            spread=_quarters(samples[OURS][step], samples[base][step]),
        )
        for step, what in STEPS.items()
        for base in (OFFICIAL, OLDER, RAW)
        if base in servers
    ]
    return Section("ACP agent, start-up", rows, [], {"seconds": samples})


def first_answers(rig: Rig, server: Server) -> dict[str, float]:
    """Seconds of each step, in one process."""
    client = open_client(server)
    client.greet()
    initialized_s = client.seconds
    session_id = client.new(rig.work)
    session_s = client.seconds
    client.prompt(session_id, "%say hi")
    client.wait_chunk()
    chunk_s = client.seconds
    client.wait_end()
    client.hang_up()
    return {
        "initialize": initialized_s,
        "new": session_s - initialized_s,
        "session": session_s,
        "chunk": chunk_s - session_s,
    }


def _ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1e3


def _quarters(ours: list[float], base: list[float]) -> tuple[float, float]:
    """The middle half of the rounds' ratios: on a shared machine there are outliers."""
    ratios = sorted(mine / theirs for mine, theirs in zip(ours, base, strict=True))
    return ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
