"""From the start of an ACP agent to the first word of its first answer, each agent in turn, round by round.

An agent may answer `initialize` before its Codex is there, so the way to the session is told as well; most
of that is Codex's own.
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
    found = agents(rig)
    samples: dict[str, dict[str, list[float]]] = {name: {step: [] for step in STEPS} for name in found}
    for number in range(rounds + 1):
        for name, server in found.items():
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
        if base in found
    ]
    return Section("ACP agent, start-up", rows, [], {"seconds": samples})


def first_answers(rig: Rig, server: Server) -> dict[str, float]:
    """Seconds of each step, in one process."""
    client = open_client(server)
    client.greet()
    greeted = client.seconds
    session_id = client.new(rig.work)
    begun = client.seconds
    client.prompt(session_id, "%say hi")
    client.wait_chunk()
    said = client.seconds
    client.wait_end()
    client.hang_up()
    return {"initialize": greeted, "new": begun - greeted, "session": begun, "chunk": said - begun}


def _ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1e3


def _quarters(ours: list[float], base: list[float]) -> tuple[float, float]:
    """Where the middle half of the rounds' own ratios lies: single rounds on a shared machine stray."""
    ratios = sorted(mine / theirs for mine, theirs in zip(ours, base, strict=True))
    return ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
