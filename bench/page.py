"""Benchmark of the page in a real browser: first paint, event to pixel, fifty open conversations, memory."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.browser.chromium import WHY_NOT, find_chromium

from bench.rig import Rig
from bench.table import Goal, Row, Section, spread_of

READABLE_MS = Goal(1000.0, of="ours")
"""A person's thoughts do not wander off meanwhile."""
SEEN_MS = Goal(100.0, of="ours")
"""What is shown within this time counts as shown at once."""
OWN_MB = Goal(0.5, of="ours")
"""Of our process, for each open conversation: as for conversations without a page."""
HEAP = Goal(1.5)
"""The page holds the conversation that it shows, not those that it has shown."""
MANY = 0.95


def run(rig: Rig, *, quick: bool = False) -> Section:
    if find_chromium() is None:
        return Section("The page", [], [f"The page was not measured: {WHY_NOT}."])
    conversations, rounds, words = (5, 2, 5) if quick else (50, 9, 60)
    result = rig.measure("bench.page_visit", rig.work / "page", conversations, rounds, words)

    opening: list[dict[str, float]] = result["opening"]
    static, paint, readable = ([each[name] for each in opening] for name in ("static", "paint", "readable"))
    rows = [
        Row(
            what="address → first paint",
            unit="ms",
            base=statistics.median(static),
            base_is="the same as a static file",
            ours=statistics.median(paint),
            digits=0,
            spread=spread_of([one / other for one, other in zip(paint, static, strict=True)]),
        ),
        Row(
            what="address → 500 entries can be read",
            unit="ms",
            base=statistics.median(static),
            base_is="the same as a static file",
            ours=statistics.median(readable),
            goal=READABLE_MS,
            digits=0,
        ),
        *_words("a lane's word → the screen", result["idle"]),
        *_words(f"the same while {conversations - 1} others write", result["busy"]),
        Row(
            what="another conversation is chosen → shown",
            unit="ms",
            base=None,
            base_is="",
            ours=statistics.median(result["choosing"]),
            goal=SEEN_MS,
            digits=0,
        ),
        Row(
            what=f"our process with {conversations} open, each",
            unit="MB",
            base=None,
            base_is="",
            ours=(result["memory_all"] - result["memory_one"]) / 1e3 / (conversations - 1),
            goal=OWN_MB,
        ),
        Row(
            what=f"JavaScript of the page after {conversations}",
            unit="MB",
            base=result["heap_one"],
            base_is="after one",
            ours=result["heap_all"],
            goal=HEAP,
            digits=1,
        ),
    ]
    note = (
        f"The page: Chromium {result['chromium']} without a graphics card. Our process with one conversation"
        f" open: {result['memory_one'] / 1e3:.0f} MB. On the screen: the second frame after the change."
    )
    return Section("The page", rows, [note], result)


def _words(what: str, samples: Sequence[dict[str, float]]) -> list[Row]:
    read, seen = ([each[name] for each in samples] for name in ("read", "seen"))
    at_most = statistics.quantiles(seen, n=100, method="inclusive")[round(MANY * 100) - 1]
    middle = Row(
        what=what,
        unit="ms",
        base=statistics.median(read),
        base_is="→ a bare reader",
        ours=statistics.median(seen),
        goal=SEEN_MS,
        digits=1,
    )
    return [middle, Row(what=f"{what}, 95 %", unit="ms", base=None, base_is="", ours=at_most, digits=1)]
