"""Benchmark of reading a job's events: near the beginning of a log, and a million events later.

Whole logs, written as a supervisor writes them. A read is what `codex_events` does in the file: a cursor is
checked, and a page is made of what follows it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.jobs_server import timed
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section, middle, spread_of
from laneway.jobs.event_log import EventWriter, read

NEAR, FAR = 10, 1_000_000
"""Events before the cursor."""
PAGE = 50
"""Events of the page that is read."""
JOB = "job-0000000000000000"
EQUAL = Goal(2.0)
TIMES = 200
BEHIND = 5_000
"""Events behind the last cursor: more than an answer takes."""
Run = dict[str, float]


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 1 if quick else 5
    runs: list[Run] = [rig.measure("bench.jobs_events", FAR, rig.work) for _ in range(rounds)]

    def row(what: str, name: str, base_is: str = f"behind event {NEAR}") -> Row:
        near, far = f"near {name}", f"far {name}"
        return Row(
            what=what,
            unit="µs",
            base=middle(runs, lambda run: run[near]),
            base_is=base_is,
            ours=middle(runs, lambda run: run[far]),
            goal=EQUAL,
            digits=0,
            spread=spread_of([run[far] / run[near] for run in runs]),
        )

    rows = [
        row(f"{PAGE} events behind event {FAR:,}", "page"),
        row(f"a whole answer of 64 KiB behind event {FAR:,}", "answer"),
        row(f"nothing new in a log of {FAR:,} events", "end", f"of {NEAR}"),
        row(f"the last event, `final`, of {FAR:,}", "final", f"of {NEAR}"),
        row(f"a log of {FAR:,} events opened to go on with it", "writer", f"of {NEAR}"),
    ]
    megabytes = middle(runs, lambda run: run["bytes"]) / 1e6
    note = (
        f"Events: medians of {TIMES} reads in each of {rounds} processes, in turn near the beginning and far"
        f" behind it; a log of {FAR:,} events has {megabytes:.0f} MB here."
    )
    return Section("Jobs: reading events", rows, [note], {"runs": runs})


class Log:
    """A log while it is written. Cursors are taken on the way: nobody can make one up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events = 0
        self.cursors: dict[int, str] = {}
        """By how many events are before it."""

    def write_to(self, events: int) -> None:
        """Until it has so many, and take the cursor."""
        with EventWriter(self.path) as writer:
            for number in range(self._events, events):
                content = {"text": f"event {number:012d}", "detail": "what a worker tells in a line or so"}
                writer.append("progress", content)
        page = read(self.path, JOB, self.cursors.get(self._events), max_bytes=1 << 40)
        self.cursors[events] = page.next_cursor
        self._events = events

    def finish(self) -> None:
        with EventWriter(self.path) as writer:
            writer.append("final", {"status": "succeeded"})

    def page(self, behind: int) -> None:
        if len(read(self.path, JOB, self.cursors[behind], max_events=PAGE).events) != PAGE:
            raise RuntimeError("events are missing")

    def answer(self, behind: int) -> None:
        if read(self.path, JOB, self.cursors[behind]).is_at_end:
            raise RuntimeError("the answer is not a whole one")

    def nothing_new(self) -> None:
        page = read(self.path, JOB, self.cursors[self._events])
        if page.events or not page.is_at_end:
            raise RuntimeError("the end of the log is not where it should be")

    def final(self) -> None:
        if not read(self.path, JOB, self.cursors[self._events]).has_final:
            raise RuntimeError("the last event is missing")

    def open_to_write(self) -> None:
        with EventWriter(self.path):
            pass


def measure(far: int, work: Path) -> Run:
    with TemporaryDirectory(dir=work) as folder:
        short, long = Log(Path(folder) / "short"), Log(Path(folder) / "long")
        short.write_to(NEAR)
        for events in (NEAR, far, far + BEHIND):
            long.write_to(events)
        took = _in_turn(
            {
                "page": (lambda: long.page(NEAR), lambda: long.page(far)),
                "answer": (lambda: long.answer(NEAR), lambda: long.answer(far)),
                "end": (short.nothing_new, long.nothing_new),
                "writer": (short.open_to_write, long.open_to_write),
            }
        )
        size = float(long.path.stat().st_size)
        for log in (short, long):
            log.finish()
        took |= _in_turn({"final": (short.final, long.final)})
    return {"bytes": size, **took}


def _in_turn(arms: dict[str, tuple[Callable[[], None], Callable[[], None]]]) -> Run:
    """Medians in µs; near and far in turn, the other one first every other time."""
    took: dict[str, list[float]] = {}
    for number in range(TIMES):
        for name, (near, far) in arms.items():
            sides = [("near", near), ("far", far)]
            for side, work in reversed(sides) if number % 2 else sides:
                took.setdefault(f"{side} {name}", []).extend(timed(work, 1))
    return {name: statistics.median(ms) * 1e3 for name, ms in took.items()}


if __name__ == "__main__":
    tell(measure(int(sys.argv[1]), Path(sys.argv[2])))
