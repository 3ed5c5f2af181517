"""`laneway jobs resolve`: what the jobs of a run did to the work tree, and what becomes of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from laneway.cli.codex_flags import add_folder
from laneway.cli.jobs.calls import JobCalls, print_json, print_rows, run_verb
from laneway.cli.jobs.names import find_ids, find_run, looks_like_run
from laneway.cli.jobs.resolve_show import answer_rows
from laneway.cli.jobs.words import set_default_verb
from laneway.jobs import tool_schemas
from laneway.terminal.style import Style, width

EPILOG = """\
All writing jobs of one work tree are a run, until it is accepted or rolled back. Without RUN the open run of
the current folder is meant. A conflict is a path that two jobs of the run have changed; `overlap`, where they
ran at the same time, keeps the run from being accepted.

exit codes: 0 done, 1 not done, with the reasons, 2 there is no such run, job or path

  laneway jobs resolve                                 what was changed, and what is in conflict
  laneway jobs resolve 89abcdef                        the same of another run
  laneway jobs resolve accept                          keep all of it
  laneway jobs resolve accept --resolved src/a.py      after you have merged this path by hand
  laneway jobs resolve rollback --job 89abcdef         give back what this job found
  laneway jobs resolve rerun                           roll back jobs in conflict, run them one by one
  laneway jobs resolve undo                            take the last rollback back
"""

Add = Callable[[argparse.ArgumentParser], None]


def add_resolve(parser: argparse.ArgumentParser) -> None:
    parser.description = "What the jobs of a run did to the work tree, and what becomes of it."
    parser.epilog = EPILOG
    set_default_verb(parser, "show", is_meant=looks_like_run)
    below = parser.add_subparsers(title="actions", metavar="ACTION")
    actions: dict[str, tuple[Add, str]] = {
        "show": (_add_show, "show the run, its conflicts and the differences (the default action)"),
        "accept": (_add_accept, "keep what the run changed, and close it"),
        "rollback": (_add_rollback, "give back what the jobs found"),
        "rerun": (_add_merge, "roll jobs back and run them again, one after the other"),
        "undo": (_add_undo, "take a rollback back"),
    }
    for name, (add, summary) in actions.items():
        inner = below.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        inner.add_argument(
            "in_run",
            nargs="?",
            metavar="RUN",
            help="a run by its id, or six characters of its beginning or end (default: that of the folder)",
        )
        add_folder(inner, "a folder in the work tree (default: the current one)")
        add(inner)
        inner.add_argument("--json", action="store_true", help="the MCP tool's result, as one JSON object")
        inner.set_defaults(run=partial(resolve, name))


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", action="append", metavar="JOB", help="only this job of the run (repeatable)")


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_jobs(parser)
    parser.add_argument(
        "--path",
        dest="paths",
        action="append",
        metavar="PATH",
        help="show what was changed in this path, in conflict or not (repeatable)",
    )


def _add_accept(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--resolved", action="append", metavar="PATH", help="a conflict that you have merged (repeatable)"
    )


def _add_merge(parser: argparse.ArgumentParser) -> None:
    _add_jobs(parser)
    parser.add_argument(
        "--merge",
        action="store_true",
        help="keep later changes to a path, if they can be merged without a conflict",
    )


def _add_rollback(parser: argparse.ArgumentParser) -> None:
    _add_merge(parser)
    parser.add_argument(
        "--anyway",
        dest="resolved",
        action="append",
        metavar="PATH",
        help="restore this path although others may have changed it (repeatable)",
    )


def _add_undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rollback", metavar="ID", help="which one (default: the last of the run)")
    parser.add_argument(
        "--merge", action="store_true", help="keep what was changed since, where that can be merged"
    )


def resolve(action: str, options: argparse.Namespace) -> int:
    async def work(calls: JobCalls) -> int:
        answer = await calls.answer(tool_schemas.RESOLVE.name, _arguments(action, calls, options))
        if options.json:
            print_json(answer)
        else:
            print_rows(list(answer_rows(action, answer, Style(sys.stdout), width(sys.stdout))))
        is_done = answer.get("accepted", True) and answer.get("ending", "done") == "done"
        return 0 if is_done else 1

    return run_verb(options, work, needs_codex=action == "rerun", left="you have left")


def _arguments(action: str, calls: JobCalls, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "action": action,
        "run": find_run(calls.tools.jobs, options.in_run),
        "jobIds": find_ids(calls.tools.jobs, options.job) if getattr(options, "job", None) else None,
        "paths": getattr(options, "paths", None),
        "resolved": getattr(options, "resolved", None),
        "merge": getattr(options, "merge", None) or None,
        "rollbackId": getattr(options, "rollback", None),
    }
