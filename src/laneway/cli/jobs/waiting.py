"""`laneway jobs wait|cancel`: waits until jobs have ended, and asks or makes them end."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Any

from laneway.cli.jobs.calls import JobCalls, add_job, add_json, print_json, print_rows, run_verb
from laneway.cli.jobs.durations import milliseconds
from laneway.cli.jobs.names import find_ids
from laneway.cli.jobs.show import Data, status_row
from laneway.cli.jobs.words import take_words_behind_flags
from laneway.jobs import tool_schemas
from laneway.jobs.waiting import MAX_WAIT_S, Until
from laneway.terminal.style import Style

TIMED_OUT = 124
"""As `timeout` of the shell has it."""
TOOLS: dict[Until, str] = {"any": tool_schemas.WAIT_ANY.name, "all": tool_schemas.WAIT_ALL.name}

WAIT_EPILOG = """\
Without an id it waits for all jobs that have not ended yet. Ctrl-C leaves the jobs alone.

exit codes: 0 all that ended succeeded, 1 one did not, 2 there is no such job, 124 the time was up,
            130 interrupted

  laneway jobs wait                             for all that have not ended
  laneway jobs wait 89abcdef 01234567 --any     for the first of two
  laneway jobs wait --timeout 30m || laneway jobs list --status failed
"""


def add_wait(parser: argparse.ArgumentParser) -> None:
    parser.description = "Wait until jobs have ended, and print how."
    parser.epilog = WAIT_EPILOG
    add_job(parser, "*")
    parser.add_argument("--any", action="store_true", help="only until one of them has ended")
    parser.add_argument("--timeout", type=milliseconds, metavar="TIME", help="at most 90s, 30m, 2h …")
    parser.add_argument(
        "--cursor",
        metavar="CURSOR",
        help="nextCursor of an earlier wait: jobs reported by it are left out",
    )
    add_json(parser)
    take_words_behind_flags(parser, "jobs")
    parser.set_defaults(run=wait)


def wait(options: argparse.Namespace) -> int:
    until: Until = "any" if options.any else "all"

    async def work(calls: JobCalls) -> int:
        jobs = calls.tools.jobs
        ids = find_ids(jobs, options.jobs) or [job.job_id for job in jobs.unfinished()]
        if not ids and not options.json:
            print("No job is running or queued: there is nothing to wait for.")
            return 0
        style = Style(sys.stdout)
        answer = await wait_for(
            calls,
            until,
            ids,
            cursor=options.cursor,
            timeout_ms=options.timeout,
            on_ended=lambda row: None if options.json else print_rows([status_row(row, style)]),
        )
        if options.json:
            print_json(answer)
        return exit_code(answer)

    return run_verb(options, work)


def exit_code(answer: Data) -> int:
    if answer["timedOut"]:
        return TIMED_OUT
    return 0 if all(each["status"] == "succeeded" for each in answer["ended"]) else 1


async def wait_for(
    calls: JobCalls,
    until: Until,
    ids: Sequence[str],
    *,
    cursor: str | None = None,
    timeout_ms: int | None = None,
    on_ended: Callable[[Data], None] = lambda row: None,
) -> dict[str, Any]:
    """The answer of the tool when the wait is over, however long that takes.

    The tool waits for some minutes at most, so it is called again and again. `on_ended` gets each job once,
    as soon as it has ended.
    """
    loop = asyncio.get_running_loop()
    deadline = None if timeout_ms is None else loop.time() + timeout_ms / 1000
    told = cursor
    while True:
        left_s = MAX_WAIT_S if deadline is None else min(MAX_WAIT_S, max(0.0, deadline - loop.time()))
        slice_ = {"jobIds": list(ids), "timeoutMs": round(left_s * 1000)}
        some = await calls.answer(TOOLS["any"], {**slice_, "cursor": told})
        for row in some["ended"]:
            on_ended(row)
        told = some["nextCursor"]
        is_over = not some["pending"] or (until == "any" and not some["timedOut"])
        if is_over or (some["timedOut"] and deadline is not None and loop.time() >= deadline):
            # Once more, as whoever waits in one call is answered.
            return await calls.answer(TOOLS[until], {**slice_, "cursor": cursor, "timeoutMs": 0})


# ── cancel ─────────────────────────────────────────────────────────────────

CANCEL_EPILOG = """\
A queued job is cancelled at once, a running one is asked to end: Codex is interrupted, then terminated.
--force kills it with everything that it started. What a writing job has changed stays: `laneway jobs resolve`
shows it and can roll it back.

  laneway jobs cancel 89abcdef
  laneway jobs cancel 89abcdef 01234567 --force
"""


def add_cancel(parser: argparse.ArgumentParser) -> None:
    parser.description = "Cancel jobs."
    parser.epilog = CANCEL_EPILOG
    add_job(parser, "+")
    parser.add_argument("--force", action="store_true", help="kill them")
    add_json(parser)
    take_words_behind_flags(parser, "jobs")
    parser.set_defaults(run=cancel)


def cancel(options: argparse.Namespace) -> int:
    async def work(calls: JobCalls) -> int:
        for job_id in find_ids(calls.tools.jobs, options.jobs):
            arguments = {"jobId": job_id, "force": options.force or None}
            answer = await calls.answer(tool_schemas.CANCEL.name, arguments)
            print_json(answer) if options.json else print_rows([status_row(answer, Style(sys.stdout))])
        return 0

    return run_verb(options, work)
