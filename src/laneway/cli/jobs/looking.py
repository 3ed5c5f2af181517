"""`laneway jobs list|status|result|events`: looks at jobs, and changes none."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import Any, get_args

from laneway.base.errors import NodeUnreachable
from laneway.base.plain import plain
from laneway.cli.jobs.calls import JobCalls, add_job, add_json, print_json, print_rows, run_verb
from laneway.cli.jobs.names import find_ids, find_job, find_run
from laneway.cli.jobs.show import event_rows, result_rows, status_row, total_rows
from laneway.cli.jobs.table import table
from laneway.cli.jobs.words import take_words_behind_flags
from laneway.jobs import tool_schemas
from laneway.jobs.event_log import TYPES
from laneway.jobs.model import Status
from laneway.terminal.answer import PlainAnswer, RawAnswer
from laneway.terminal.style import Style, width

SHOWN = 25
"""Jobs on one screen, unless more are asked for."""
FOLLOW_S = 5.0
"""Between two looks at a job that does nothing: its supervisor may have died."""
REMOTE_FOLLOW_S = 0.5
"""The same for one on another machine, whose files are not here."""
FOLLOW_TICK_S = 0.05
STATUSES = (*get_args(Status), "unfinished")


# ── list ───────────────────────────────────────────────────────────────────


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.description = "List background jobs, the newest first, with the slots in use and today's tokens."
    parser.add_argument(
        "--status", choices=STATUSES, metavar="STATUS", help="only these: running, failed, unfinished, …"
    )
    parser.add_argument("--tag", metavar="TAG", help="only those with this tag")
    parser.add_argument("--run", dest="in_run", metavar="RUN", help="only those of a run")
    parser.add_argument("--limit", type=number, metavar="N", help=f"at most N jobs (default: {SHOWN})")
    parser.add_argument("--cursor", metavar="CURSOR", help="continue after an earlier list")
    add_json(parser)
    parser.set_defaults(run=list_jobs)


def list_jobs(options: argparse.Namespace) -> int:
    async def work(calls: JobCalls) -> int:
        filters = {
            "status": options.status,
            "tag": options.tag,
            "run": find_run(calls.tools.jobs, options.in_run),
            "cursor": options.cursor,
        }
        limit = options.limit or (None if options.json else SHOWN)
        answer = await calls.answer(tool_schemas.LIST.name, {**filters, "limit": limit})
        if options.json:
            print_json(answer)
        elif answer["jobs"]:
            print_rows(table(answer["jobs"], columns=width(sys.stdout), style=Style(sys.stdout)))
            if "nextCursor" in answer:
                print(f"older ones: --cursor {answer['nextCursor']}")
            print_rows(total_rows(answer))
        elif any(value is not None for value in filters.values()):
            print("No job matches.")
        else:
            print('There are no background jobs: `laneway jobs spawn "…"` starts one.')
        return 0

    return run_verb(options, work)


def number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000000")
    return int(text)


# ── status and result ──────────────────────────────────────────────────────


def add_status(parser: argparse.ArgumentParser) -> None:
    parser.description = "The status of jobs, one line each."
    add_job(parser, "+")
    add_json(parser)
    take_words_behind_flags(parser, "jobs")
    parser.set_defaults(run=status)


def status(options: argparse.Namespace) -> int:
    async def work(calls: JobCalls) -> int:
        for job_id in find_ids(calls.tools.jobs, options.jobs):
            answer = await calls.answer(tool_schemas.STATUS.name, {"jobId": job_id})
            if options.json:
                print_json(answer)
                continue
            problem = await asyncio.to_thread(calls.tools.problem_of, job_id)
            rows = [f"  ! {plain(problem)}"] if problem else []
            print_rows([status_row(answer, Style(sys.stdout)), *rows])
        return 0

    return run_verb(options, work)


RESULT_EPILOG = """\
exit codes: 0 the job succeeded, or has not ended yet, 1 it did not succeed, 2 there is no such job

  laneway jobs result job-0123456789abcdef
  laneway jobs result 89abcdef --message > answer.md    only the last message, unchanged
"""


def add_result(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "What a job produced: its last message, the files it changed with the evidence for each, conflicts,"
        " tokens, and why it failed. Partial while it runs."
    )
    parser.epilog = RESULT_EPILOG
    add_job(parser)
    parser.add_argument("--message", action="store_true", help="only the last message, unchanged")
    add_json(parser)
    parser.set_defaults(run=result)


def result(options: argparse.Namespace) -> int:
    async def work(calls: JobCalls) -> int:
        return await show_result(calls, find_job(calls.tools.jobs, options.job).job_id, options)

    return run_verb(options, work)


async def show_result(calls: JobCalls, job_id: str, options: argparse.Namespace) -> int:
    """Print a result; the exit code says whether the job succeeded, or has not ended."""
    answer = await calls.answer(tool_schemas.RESULT.name, {"jobId": job_id})
    if options.json:
        print_json(answer)
    elif getattr(options, "message", False):
        writer = PlainAnswer(sys.stdout) if sys.stdout.isatty() else RawAnswer(sys.stdout)
        writer.write(answer["lastMessage"])
        writer.end_message()
    else:
        print_rows(list(result_rows(answer, Style(sys.stdout), width(sys.stdout))))
    return 0 if answer["status"] == "succeeded" or answer["isPartial"] else 1


# ── events ─────────────────────────────────────────────────────────────────

EVENTS_EPILOG = """\
  laneway jobs events 89abcdef                       what it has done so far
  laneway jobs events 89abcdef --follow              and what it does, until it ends
  laneway jobs events 89abcdef --type error --json   one answer of the tool on each line
"""


def add_events(parser: argparse.ArgumentParser) -> None:
    parser.description = "What a job did: messages, tool calls and their results, progress, errors."
    parser.epilog = EVENTS_EPILOG
    add_job(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the job has ended")
    parser.add_argument(
        "--type",
        dest="types",
        action="append",
        choices=TYPES,
        metavar="TYPE",
        help=f"only these (repeatable): {', '.join(TYPES)}",
    )
    parser.add_argument("--limit", type=number, metavar="N", help="at most N events")
    parser.add_argument("--cursor", metavar="CURSOR", help="only what came after this cursor")
    parser.add_argument("--full", action="store_true", help="whole contents and outputs, however long")
    add_json(parser)
    parser.set_defaults(run=events)


def events(options: argparse.Namespace) -> int:
    async def work(calls: JobCalls) -> int:
        jobs = calls.tools.jobs
        job = find_job(jobs, options.job)
        marks = (jobs.places.job(job.job_id).events, jobs.places.bell)
        cursor, left, has_any, is_away = options.cursor, options.limit, False, False
        arguments = {"jobId": job.job_id, "types": options.types, "full": options.full or None}
        while True:
            seen = looks_of(marks)
            page = {"cursor": cursor, "maxEvents": left}
            try:
                answer = await calls.answer(tool_schemas.EVENTS.name, {**arguments, **page})
            except NodeUnreachable as problem:
                if not options.follow:
                    raise
                if not is_away:
                    print(f"laneway: {problem}; waiting for it", file=sys.stderr, flush=True)
                is_away = True
                await changed(marks, seen)
                continue
            is_away = False
            is_at_end = answer["nextCursor"] == cursor
            if answer["events"] or answer["done"] or not is_at_end:
                _print_events(answer, options)
            has_any = has_any or bool(answer["events"])
            left = None if left is None else left - len(answer["events"])
            cursor = answer["nextCursor"]
            if answer["done"] or left == 0 or (is_at_end and not options.follow):
                if not has_any and not options.json:
                    print("There are no such events." if options.types else "It has done nothing so far.")
                return 0
            if is_at_end:
                await changed(marks, seen, REMOTE_FOLLOW_S if job.is_elsewhere else FOLLOW_S)

    return run_verb(options, work, left="you have left; the job goes on")


def looks_of(files: tuple[Path, ...]) -> list[tuple[int, int]]:
    """Size and time of files, as far as they exist."""
    return [(look.st_size, look.st_mtime_ns) for look in map(_stat, files) if look is not None]


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:
        return None


async def changed(files: tuple[Path, ...], seen: list[tuple[int, int]], most_s: float = FOLLOW_S) -> None:
    """Wait until one of the files is another than it was, or for so long."""
    until = asyncio.get_running_loop().time() + most_s
    while looks_of(files) == seen and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110  no event
        await asyncio.sleep(FOLLOW_TICK_S)


def _print_events(answer: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        print_json(answer)
        return
    style, columns = Style(sys.stdout), width(sys.stdout)
    for event in answer["events"]:
        print_rows(event_rows(event, style, columns, is_full=options.full))
