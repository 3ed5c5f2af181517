"""Benchmark of text streamed through ACP agents at full speed: words per second, CPU and memory.

Each stream is the first prompt of a fresh agent, read by a client in a process of its own. Words are counted,
not messages: an agent may merge deltas.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.acp_agents import OFFICIAL, OLDER, OURS, RAW, Editor, agents
from bench.processes import GONE, cpu_s, resident_kb, tree
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section, middle

WORDS = 20_000
SHARE = Goal(0.95, at_least=True)
"""Of what raw app-server delivers, at least."""
FASTER = Goal(1.6, at_least=True)
"""Than the official adapter, at least so many times."""
LESS = Goal(1.0)
Run = dict[str, float]


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 2 if quick else 9
    prompt = f"%stream {WORDS} words"
    sides = list(agents(rig))
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        # Each round begins with another side, so that no side always runs behind the same one.
        first = number % len(sides)
        for side in sides[first:] + sides[:first]:
            result = _measure(rig, side, prompt)
            if result["words"] != WORDS:
                raise RuntimeError(f"{side} brought {result['words']:.0f} of {WORDS} words")
            if number:  # the first round warms the disk's and the model's caches
                runs[side].append(result)
    rows = _rows(runs)
    chunks = middle(runs[OURS], lambda run: run["chunks"])
    note = (
        f"ACP stream: {WORDS:,} words at full speed, medians of {rounds} rounds; ours came in {chunks:,.0f}"
        " messages. CPU and memory are of all processes of the agent but Codex; the older adapter has its"
        " Codex inside, so only “with Codex” compares with it."
    )
    return Section("ACP agent, streaming from the real Codex", rows, [note], {"runs": runs})


def _measure(rig: Rig, side: str, prompt: str) -> Run:
    if side == RAW:
        return rig.measure("bench.clients", "raw", prompt, rig.work)
    return rig.measure("bench.acp_stream", side, prompt, rig.codex, rig.work, rig.home)


def _rows(runs: dict[str, list[Run]]) -> list[Row]:
    def row(
        what: str, unit: str, base: str, read: Callable[[Run], float], goal: Goal | None, digits: int
    ) -> Row:
        ratios = [read(mine) / read(theirs) for mine, theirs in zip(runs[OURS], runs[base], strict=True)]
        return Row(
            what=what,
            unit=unit,
            base=middle(runs[base], read),
            base_is=base,
            ours=middle(runs[OURS], read),
            goal=goal,
            digits=digits,
            spread=(min(ratios), max(ratios)),
        )

    rows = [
        row("text at the client", "words/s", base, lambda run: run["words"] / run["wall_s"], goal, 0)
        for base, goal in ((RAW, SHARE), (OFFICIAL, FASTER), (OLDER, None))
        if base in runs
    ]
    if OFFICIAL in runs:
        rows.append(row("CPU of the agent for it", "s", OFFICIAL, lambda run: run["adapter_cpu_s"], LESS, 2))
        rows.append(
            row("memory of the agent after it", "MB", OFFICIAL, lambda run: run["adapter_kb"] / 1e3, LESS, 1)
        )
    rows += [
        row("memory with Codex after it", "MB", base, lambda run: run["whole_kb"] / 1e3, goal, 1)
        for base, goal in ((OFFICIAL, LESS), (OLDER, None))
        if base in runs
    ]
    return rows


def follow(rig: Rig, side: str, prompt: str) -> Run:
    """Measure one stream through a fresh agent."""
    client = Editor(agents(rig)[side])
    client.greet()
    session_id = client.new(rig.work)
    _, _, cpu_before_s = usage(client.process.pid, rig.codex)
    before = time.perf_counter()
    client.prompt(session_id, prompt)
    words, chunks = client.words()
    wall_s = time.perf_counter() - before
    adapter_kb, whole_kb, cpu_s = usage(client.process.pid, rig.codex)
    client.hang_up()
    return {
        "words": words,
        "chunks": chunks,
        "wall_s": wall_s,
        "adapter_kb": adapter_kb,
        "whole_kb": whole_kb,
        "adapter_cpu_s": cpu_s - cpu_before_s,
    }


def usage(pid: int, codex: str) -> tuple[float, float, float]:
    """Resident kB without and with Codex, and CPU seconds without it, of a process and its descendants."""
    adapter_kb = whole_kb = used_s = 0.0
    for each, is_codex in tree(pid, codex).items():
        with contextlib.suppress(*GONE):
            kb, its_s = resident_kb(each), cpu_s(each)
            whole_kb += kb
            if not is_codex:
                adapter_kb += kb
                used_s += its_s
    return adapter_kb, whole_kb, used_s


if __name__ == "__main__":
    side, prompt, codex, work, home = sys.argv[1:]
    tell(follow(Rig(codex, Path(home), Path(work), dict(os.environ)), side, prompt))
