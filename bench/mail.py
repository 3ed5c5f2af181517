"""Benchmark of team mail: delivery from inbox to turn, and the cost of polling and sending by inbox size.

`bench.mail_delivery` measures delivery, with a server, a stub Codex and a writer in processes of
their own; `bench.mail_boxes` measures the files.
"""

from __future__ import annotations

from typing import Any

from bench.mail_boxes import CROWD, UNREAD, WRITERS
from bench.rig import Rig
from bench.table import Goal, Row, Section, middle

SIZES = (10, 1_000, 10_000)
START_MS = Goal(300.0, of="ours")
POLL_MS = Goal(5.0, of="ours")
HOLD_MS = Goal(50.0, of="ours")
FLAT = Goal(1.05)


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds, messages, times, polls = (1, 20, 20, 200) if quick else (3, 100, 60, 2_000)
    started = [rig.measure("bench.mail_delivery", messages, rig.work, rig.home) for _ in range(rounds)]
    boxes = {n: [_boxes(rig, "box", n, times) for _ in range(rounds)] for n in SIZES}
    crowds = [_boxes(rig, "crowd", CROWD, 3) for _ in range(rounds)]
    shared = [_boxes(rig, "shared", WRITERS, times) for _ in range(rounds)]
    memory = _boxes(rig, "memory", SIZES[-1], polls)
    rows = _start_rows(started)
    for size, results in boxes.items():
        rows += _box_rows(size, results)
    rows += _crowd_rows(crowds, shared)
    rows.append(
        Row(
            what=f"memory after {polls:,} polls of {SIZES[-1]:,} messages, each time changed",
            unit="MB",
            base=memory["before"] / 1e3,
            base_is="after 20 polls",
            ours=memory["after"] / 1e3,
            goal=FLAT,
            digits=1,
        )
    )
    notes = [
        f"Mail: {messages} messages by another process, as Claude Code writes them, one after another, to an"
        " idle session of `laneway mcp`; until the stub Codex has read `turn/start`. The writer's own lock"
        f" and write are included. Inboxes have {UNREAD} unread messages at their end. A safe write is a file"
        f" of that size, written, synced and renamed, with its folder synced. Medians of {rounds} runs."
    ]
    samples: dict[str, object] = {
        "delivery": started,
        "boxes": boxes,
        "crowd": crowds,
        "shared": shared,
        "memory": memory,
    }
    return Section("Team mail", rows, notes, samples)


def _boxes(rig: Rig, what: str, size: int, times: int) -> dict[str, Any]:
    return rig.measure("bench.mail_boxes", what, size, times, rig.work)


def _start_rows(results: list[dict[str, Any]]) -> list[Row]:
    return [
        Row(
            what=f"inbox written → turn started, {name}",
            unit="ms",
            base=None,
            base_is="",
            ours=middle(results, lambda one, name=name: one[name]),  # type: ignore[misc]
            goal=START_MS,
            digits=1,
        )
        for name in ("p50", "p99", "worst")
    ]


def _box_rows(size: int, results: list[dict[str, Any]]) -> list[Row]:
    def row(
        what: str, ours: str, base: str | None = None, base_is: str = "", goal: Goal | None = None
    ) -> Row:
        return Row(
            what=f"{what}, {size:,} messages",
            unit="ms",
            base=middle(results, lambda one: one[base]) if base else None,
            base_is=base_is,
            ours=middle(results, lambda one: one[ours]),
            goal=goal,
            digits=3,
        )

    goal = POLL_MS if size == SIZES[-1] else None
    return [
        row("poll, nothing new", "unchanged"),
        row("poll, changed", "changed", "loads", "json.loads", goal),
        row("poll, changed, CPU time alone", "changed_cpu"),
        row("poll, changed, all unread", "all_unread", "loads", "json.loads"),
        row("send", "send", "safe_write", "a safe write"),
        row("locks held, send and mark, p99", "held_p99", goal=HOLD_MS),
    ]


def _crowd_rows(crowds: list[dict[str, Any]], shared: list[dict[str, Any]]) -> list[Row]:
    return [
        Row(
            what=f"broadcast to {CROWD} members",
            unit="ms",
            base=middle(crowds, lambda one: one["safe_writes"]),
            base_is=f"{CROWD} safe writes",
            ours=middle(crowds, lambda one: one["broadcast"]),
            digits=0,
        ),
        Row(
            what=f"locks held, {WRITERS} processes on one inbox, p99",
            unit="ms",
            base=None,
            base_is="",
            ours=middle(shared, lambda one: one["held_p99"]),
            goal=HOLD_MS,
            digits=3,
        ),
    ]
