"""Benchmark of one stream through four clients in turn: words per second, and CPU per 100,000 deltas."""

from __future__ import annotations

from bench.rig import Rig
from bench.table import Goal, Row, Section, middle

SIDES = ("alone", "raw", "decoding", "ours")
WORDS = 60_000
SHARE = Goal(0.9, at_least=True)
"""Of what raw app-server delivers, at least."""


def run(rig: Rig, *, quick: bool = False) -> Section:
    words, rounds = (20_000, 2) if quick else (WORDS, 5)
    prompt = f"%stream {words} words"
    for side in ("raw", "ours"):
        rig.measure("bench.clients", side, prompt, rig.work)  # warms the disk's and the model's caches
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for number in range(rounds):
        # Each round begins with another side, so that no side always runs behind the same one.
        for side in SIDES[number % 4 :] + SIDES[: number % 4]:
            result = rig.measure("bench.clients", side, prompt, rig.work)
            if result["words"] != words:
                raise RuntimeError(f"{side} counted {result['words']} of {words} words")
            runs[side].append(result)
    speed = {side: middle(runs[side], lambda run: run["words"] / run["wall_s"]) for side in SIDES}
    cpu = {side: middle(runs[side], lambda run: run["cpu_s"] / run["words"] * 1e5) for side in SIDES}

    def faster(base: str, base_is: str, goal: Goal | None = SHARE) -> Row:
        return Row(
            what="text at the reader",
            unit="words/s",
            base=speed[base],
            base_is=base_is,
            ours=speed["ours"],
            goal=goal,
            digits=0,
            spread=_spread(runs["ours"], runs[base]),
        )

    def cheaper(base: str, base_is: str) -> Row:
        return Row(
            what="CPU of the client per 100,000 deltas",
            unit="s",
            base=cpu[base],
            base_is=base_is,
            ours=cpu["ours"],
        )

    rows = [
        faster("alone", "raw, undisturbed", None),
        faster("raw", "raw, undecoded"),
        faster("decoding", "raw, decoding"),
        cheaper("raw", "raw, undecoded"),
        cheaper("decoding", "raw, decoding"),
    ]
    notes = [
        f"Stream: {words:,} words at full speed, medians of {rounds} rounds. “Undisturbed” looks into the"
        " pipe only every 5 ms, too late for a client that passes words on: it is the ceiling. Who reads"
        " each line at once wakes up for it and so slows app-server: raw reaches"
        f" {speed['raw'] / speed['alone']:.0%} of the ceiling, ours {speed['ours'] / speed['alone']:.0%}."
    ]
    return Section("Streaming from the real app-server", rows, notes, {"runs": runs})


def _spread(ours: list[dict[str, float]], base: list[dict[str, float]]) -> tuple[float, float]:
    """The lowest and highest ratio of a round. Both sides stream the same words, so only time differs."""
    ratios = [theirs["wall_s"] / mine["wall_s"] for mine, theirs in zip(ours, base, strict=True)]
    return min(ratios), max(ratios)
