"""`laneway jobs gc`: removes jobs that ended long ago. Shows them first, and asks if a person can answer."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import Any

from laneway.base.counting import counted
from laneway.base.plain import plain
from laneway.cli.confirming import confirm
from laneway.cli.jobs.calls import JobCalls, print_rows, run_verb
from laneway.cli.jobs.durations import days
from laneway.cli.jobs.table import table
from laneway.jobs.gc import Collected, GcPlan, collect, plan
from laneway.jobs.job_json import row_json
from laneway.jobs.service import Jobs
from laneway.terminal.prompting.keyboard import Keyboard, find_keyboard
from laneway.terminal.style import Style, width

DAY_S = 24 * 60 * 60.0
MAX_SHOWN = 25
"""Jobs that are listed before somebody is asked; the others are counted."""

EPILOG = """\
Removed are jobs that ended long ago, with their events and results, and the snapshots by which their edits
could be rolled back. Jobs of a run go together, and only when the run is closed: accepted, rolled back, or
expired.

  laneway jobs gc --dry-run            what would be removed
  laneway jobs gc --older-than 7d      what ended more than a week ago
"""


def add_gc(parser: argparse.ArgumentParser) -> None:
    parser.description = "Remove jobs that ended long ago."
    parser.epilog = EPILOG
    parser.add_argument(
        "--older-than",
        type=days,
        metavar="TIME",
        help="12h, 30d … since it ended (default: the setting jobs.keep_days, 30 days)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="as data, for programs")
    parser.set_defaults(run=gc)


def gc(options: argparse.Namespace) -> int:
    async def work(calls: JobCalls) -> int:
        jobs = calls.tools.jobs
        age_days = calls.settings.jobs_keep_days if options.older_than is None else options.older_than
        await asyncio.to_thread(jobs.look)
        garbage = await asyncio.to_thread(plan, jobs, age_days * DAY_S)
        if options.dry_run:
            _report(options, jobs, garbage, None)
            return 0
        keyboard = _keyboard(options)
        if not garbage.is_empty and keyboard is not None:
            _show(jobs, garbage, "will be")
            if not await confirm(keyboard, "Remove them?"):
                print("Nothing was removed.")
                return 0
        collected = await asyncio.to_thread(collect, jobs, garbage)
        _report(options, jobs, garbage, collected)
        return 1 if collected.problems else 0

    return run_verb(options, work, left="you have left; what was removed is gone")


def _keyboard(options: argparse.Namespace) -> Keyboard | None:
    """The terminal to ask at; None if a program reads our output, or --yes was given."""
    return None if options.yes or options.json or not os.isatty(0) else find_keyboard()


def _report(options: argparse.Namespace, jobs: Jobs, garbage: GcPlan, collected: Collected | None) -> None:
    if options.json:
        print(json.dumps(_json(garbage, collected)))
    elif collected is None:
        _show(jobs, garbage, "would be")
        _show_staying(garbage)
    else:
        if garbage.is_empty:
            print("There is nothing to remove.")
        elif collected.jobs or collected.trees or collected.freed_bytes:
            what = counted(len(collected.jobs), "job")
            print(
                f"{what} and {counted(len(collected.runs), 'run')} removed: {_bytes(collected.freed_bytes)}."
            )
        _show_staying(garbage)
        for problem in collected.problems:
            print(f"laneway: {plain(problem)}", file=sys.stderr)


def _json(garbage: GcPlan, collected: Collected | None) -> dict[str, Any]:
    stay = [{"jobId": each.job_id, "run": each.run_id, "why": each.why} for each in garbage.stay]
    if collected is None:
        return {
            "dryRun": True,
            "jobs": [job.job_id for job in garbage.jobs],
            "runs": [run.run_id for run in garbage.runs],
            "trees": len(garbage.trees),
            "stay": stay,
        }
    return {
        "dryRun": False,
        "jobs": list(collected.jobs),
        "runs": list(collected.runs),
        "trees": collected.trees,
        "freedBytes": collected.freed_bytes,
        "stay": stay,
        "problems": list(collected.problems),
    }


def _show(jobs: Jobs, garbage: GcPlan, be: str) -> None:
    if garbage.is_empty:
        print("There is nothing to remove.")
        return
    rows = [row_json(job, jobs.ledger.now()) for job in garbage.jobs[:MAX_SHOWN]]
    print_rows(table(rows, columns=width(sys.stdout), style=Style(sys.stdout)))
    if len(garbage.jobs) > MAX_SHOWN:
        print(f"and {len(garbage.jobs) - MAX_SHOWN} more")
    parts = [counted(len(garbage.jobs), "job"), counted(len(garbage.runs), "run")]
    if garbage.trees:
        parts.append(f"the snapshots of {counted(len(garbage.trees), 'work tree')}")
    if garbage.leftovers:
        parts.append(f"{counted(len(garbage.leftovers), 'folder')} without a job")
    print(f"{', '.join(parts)} {be} removed.")


def _show_staying(garbage: GcPlan) -> None:
    open_runs = sorted({each.run_id for each in garbage.stay if each.why == "open"})
    for run_id in open_runs:
        number = sum(each.run_id == run_id for each in garbage.stay)
        what = f"{counted(number, 'old job')} of {run_id} {'stays' if number == 1 else 'stay'}"
        print(f"{what}: it is open; see `laneway jobs resolve`.")


def _bytes(number: int) -> str:
    if number < 1024 * 1024:
        return f"{number / 1024:.0f} KiB"
    return f"{number / 1024 / 1024:,.1f} MiB"
