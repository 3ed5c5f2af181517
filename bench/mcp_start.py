"""Benchmark of the start-up of MCP servers, up to the first answers; they take turns in each round."""

from __future__ import annotations

import statistics

from bench.mcp_servers import NPM, OLD, OURS, Server, Talk, servers
from bench.rig import Rig
from bench.table import Goal, Row, Section

NO_SLOWER = Goal(1.0)
"""Than the original that we replace."""
STEPS = {
    "initialize": "spawn → initialize answered",
    "tools": "spawn → tools/list answered",
    "codex": "spawn → first answer of codex",
}


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 3 if quick else 15
    all_servers = servers(rig)
    samples: dict[str, dict[str, list[float]]] = {name: {step: [] for step in STEPS} for name in all_servers}
    for number in range(rounds + 1):
        for name, server in all_servers.items():
            for step, seconds in first_answers(server).items():
                if number:  # the first round warms the disk's cache
                    samples[name][step].append(seconds)
    rows = []
    for step, what in STEPS.items():
        for base in (OLD, NPM):
            if base not in all_servers:
                continue
            rows += [
                Row(
                    what=f"laneway {ours}: {what}",
                    unit="ms",
                    base=_ms(samples[base][step]),
                    base_is=base,
                    ours=_ms(samples[ours][step]),
                    goal=NO_SLOWER if base == OLD else None,
                    digits=0,
                    spread=_quarters(samples[ours][step], samples[base][step]),
                )
                for ours in OURS
            ]
    return Section("MCP server, start-up", rows, [], {"seconds": samples})


def first_answers(server: Server) -> dict[str, float]:
    """Seconds from the start of the process to each step, in one process."""
    talk = Talk(server)
    talk.greet()
    seconds = {"initialize": talk.seconds}
    talk.ask("tools/list", {})
    seconds["tools"] = talk.seconds
    talk.call("codex", server.first_call("%say hi"))
    seconds["codex"] = talk.seconds
    talk.hang_up()
    return seconds


def _ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1e3


def _quarters(ours: list[float], base: list[float]) -> tuple[float, float]:
    """The middle half of the rounds' ratios: on a shared machine there are outliers."""
    ratios = sorted(mine / theirs for mine, theirs in zip(ours, base, strict=True))
    return ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
