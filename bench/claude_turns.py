"""Benchmark of the real Claude Code through three clients: start to the first word, and words a second."""

from __future__ import annotations

import time

from bench.claude_rig import claude_rig
from bench.rig import Rig
from bench.table import Goal, Row, Section, middle, spread_of

SIDES = ("raw", "sdk", "ours")
WORDS = 20_000
FIRST_WORD = Goal(1.1)
NAMES = {"raw": "raw stream-json", "sdk": "claude-agent-sdk"}


def run(rig: Rig, *, quick: bool = False) -> Section:
    words, rounds = (2_000, 2) if quick else (WORDS, 9)
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    with claude_rig(rig) as here:
        for number in range(rounds + 1):
            # Each round begins with another side, so that no side always runs behind the same one.
            for side in SIDES[number % 3 :] + SIDES[: number % 3]:
                result = here.measure("bench.claude_clients", side, time.monotonic(), words)
                if result["words"] != words:
                    raise RuntimeError(f"{side} counted {result['words']} of {words} words")
                if number:  # the first round warms the disk's cache
                    runs[side].append(result)

    def row(what: str, unit: str, name: str, base: str, scale: float, **fields: object) -> Row:
        theirs, ours = (middle(runs[side], lambda run: run[name]) * scale for side in (base, "ours"))
        ratios = [mine[name] / other[name] for mine, other in zip(runs["ours"], runs[base], strict=True)]
        return Row(
            what=what,
            unit=unit,
            base=theirs,
            base_is=NAMES[base],
            ours=ours,
            spread=spread_of(ratios),
            **fields,  # type: ignore[arg-type]
        )

    for results in runs.values():
        for each in results:
            each["speed"] = each["words"] / each["wall_s"]
            each["cpu"] = each["cpu_s"] / each["words"] * 1e5
    rows = [
        row("start → first word, imports done", "ms", "first_s", "raw", 1e3, goal=FIRST_WORD, digits=0),
        row("start → first word, imports done", "ms", "first_s", "sdk", 1e3, digits=0),
        row("process start → first word", "ms", "whole_s", "raw", 1e3, digits=0),
        row("process start → first word", "ms", "whole_s", "sdk", 1e3, digits=0),
        row("text at the reader", "words/s", "speed", "raw", 1, digits=0),
        row("text at the reader", "words/s", "speed", "sdk", 1, digits=0),
        row("CPU of the client per 100,000 words", "s", "cpu", "raw", 1),
        row("CPU of the client per 100,000 words", "s", "cpu", "sdk", 1),
    ]
    note = (
        f"Claude: medians of {rounds} rounds, with the lowest and highest ratio of a round; {words:,} words"
        " at full speed in the second turn. Raw writes handshake and prompt at once and decodes each line; it"
        " neither guards the process, nor locks the session, nor looks whether an input was taken."
    )
    return Section("Claude through three clients", rows, [note], {"runs": runs})
