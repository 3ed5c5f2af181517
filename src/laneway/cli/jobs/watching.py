"""`laneway jobs watch`: a live table on a terminal, a line for each change elsewhere, until all are over."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from laneway.base.clock import LoopClock
from laneway.cli.jobs.calls import JobCalls, add_job, print_json, run_verb
from laneway.cli.jobs.live_table import LiveTable
from laneway.cli.jobs.names import find_ids
from laneway.cli.jobs.show import status_row
from laneway.cli.jobs.table import Row, table
from laneway.cli.jobs.words import take_words_behind_flags
from laneway.jobs.model import ENDED, Job
from laneway.jobs.tools import JobTools
from laneway.jobs.waiting import Waiter
from laneway.terminal.foreign import label
from laneway.terminal.status import count
from laneway.terminal.style import Style, is_dumb, size

TICK_S = 1.0
"""Between two drawings although no job has changed its status: what they do and have used."""
HINT = "Ctrl-C leaves the jobs alone"
SPARE_ROWS = 3
"""Of the terminal: for the header, the totals, and the line that the cursor is on."""

EPILOG = """\
Without an id it watches all jobs that have not ended yet. It ends with them; Ctrl-C leaves them alone. In a
pipe each change is a line.

exit codes: 0 all that were watched succeeded, 1 one did not, 2 there is no such job, 130 you left

  laneway jobs watch
  laneway jobs watch 89abcdef --json | grep failed
"""


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.description = "Watch jobs at work, until they have ended."
    parser.epilog = EPILOG
    add_job(parser, "*")
    parser.add_argument("--json", action="store_true", help="each change as an object on a line")
    take_words_behind_flags(parser, "jobs")
    parser.set_defaults(run=watch)


def watch(options: argparse.Namespace) -> int:
    async def work(calls: JobCalls) -> int:
        jobs = calls.tools.jobs
        ids = find_ids(jobs, options.jobs) or [job.job_id for job in jobs.unfinished()]
        if not ids:
            if not options.json:
                print("No job is running or queued: there is nothing to watch.")
            return 0
        view = _view(options)
        with _redrawn_when_resized(view):
            try:
                return await _watch(calls.tools, ids, view)
            finally:
                view.close()

    return run_verb(options, work)


async def _watch(tools: JobTools, ids: Sequence[str], view: JobsTable) -> int:
    jobs = tools.jobs
    await tools.follow()
    waiter = Waiter(jobs.places.bell, LoopClock())
    seen: list[Job] = []

    def read() -> list[Job]:
        jobs.look()
        seen[:] = jobs.many(ids)
        return seen

    def show() -> None:
        view.show([tools.row_of(job) for job in seen])

    while True:
        waited = await waiter.wait(read, None, "all", TICK_S, lambda pending: show())
        show()
        if waited.is_satisfied:
            return 0 if all(job.status == "succeeded" for job in seen) else 1


class JobsTable(Protocol):
    """Shows all watched jobs each time; what has not changed need not be shown again."""

    def show(self, rows: Sequence[Row]) -> None: ...

    def again(self) -> None: ...

    def close(self) -> None: ...


def _view(options: argparse.Namespace) -> JobsTable:
    if options.json:
        return ChangeLines(is_json=True)
    return TableView() if sys.stdout.isatty() and not is_dumb() else ChangeLines()


class ChangeLines:
    """A line for each change of a job's status, the first time for each job."""

    def __init__(self, *, is_json: bool = False) -> None:
        self._is_json = is_json
        self._statuses: dict[str, str] = {}

    def show(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if self._statuses.get(row["jobId"]) != row["status"]:
                self._statuses[row["jobId"]] = row["status"]
                self._print(row)

    def _print(self, row: Row) -> None:
        if self._is_json:
            print_json(row)
        else:
            title = label(row["title"], None)
            print(f"{time.strftime('%H:%M:%S')}  {status_row(row, Style(sys.stdout))}  {title}", flush=True)

    def again(self) -> None:
        """Lines stay as they are."""

    def close(self) -> None:
        """Nothing is left to do."""


class TableView:
    """A table that is drawn in place."""

    def __init__(self) -> None:
        self._live = LiveTable(sys.stdout)
        self._style = Style(sys.stdout)
        self._rows: Sequence[Row] = ()

    def show(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.again()

    def again(self) -> None:
        if self._rows:
            self._live.draw(screen(self._rows, *size(sys.stdout), self._style))

    def close(self) -> None:
        """At the end all of them, also those that the terminal had no room for."""
        columns, height = size(sys.stdout)
        if all(row["status"] in ENDED for row in self._rows) and len(self._rows) > height - SPARE_ROWS:
            self._live.draw([*table(self._rows, columns=columns, style=self._style), totals(self._rows)])
        self._live.close()


def screen(rows: Sequence[Row], columns: int, height: int, style: Style) -> list[str]:
    """The table with its totals, as much of it as fits. What has ended is left out first."""
    room = max(1, height - SPARE_ROWS)
    shown = rows
    if len(rows) > room:
        chosen = sorted(rows, key=_importance)[: max(1, room - 1)]
        shown = [row for row in rows if row in chosen]
    lines = table(shown, columns=columns, style=style)
    if len(shown) < len(rows):
        lines.append(style.dim(label(f"… and {len(rows) - len(shown)} more", columns)))
    return [*lines[: height - 2], style.dim(label(totals(rows), columns))]


def _importance(row: Row) -> int:
    return 2 if row["status"] in ENDED else 1 if row["status"] == "queued" else 0


def totals(rows: Sequence[Row]) -> str:
    """`2 running · 1 queued · 3 ended · 12.0k tokens`."""
    ended = sum(row["status"] in ENDED for row in rows)
    queued = sum(row["status"] == "queued" for row in rows)
    parts = [
        f"{number} {what}"
        for number, what in ((len(rows) - ended - queued, "running"), (queued, "queued"), (ended, "ended"))
        if number
    ]
    if tokens := sum(row.get("tokens", 0) for row in rows):
        parts.append(f"{count(tokens)} tokens")
    return " · ".join(parts if ended == len(rows) else (*parts, HINT))


@contextmanager
def _redrawn_when_resized(view: JobsTable) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, view.again)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
