"""Runs a verb of `laneway jobs`: opens the user's jobs, calls their tools, prints answers as JSON."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.app.jobs_cli import command_jobs, rehearsed_jobs
from laneway.app.options import CodexChoice
from laneway.base.errors import BadCursor, UsageError
from laneway.base.plain import code_label
from laneway.base.settings import Settings
from laneway.cli.codex_flags import folder
from laneway.cli.command_settings import settings_in
from laneway.core.tools import Caller
from laneway.jobs.lineage import is_in_worker
from laneway.jobs.service import LOCAL
from laneway.jobs.tools import JobTools

LEFT = 130
"""The exit code after Ctrl-C."""


class JobCalls:
    """The tools of the user's jobs, called as the user."""

    def __init__(self, tools: JobTools, settings: Settings) -> None:
        self.tools = tools
        self.settings = settings
        # Who is told when a job ends: nobody has the default name.
        identity = settings.identity if settings.source("identity").kind != "default" else None
        self._caller = Caller(agent_id="", principal=LOCAL, identity=identity)

    async def answer(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that are None were not given."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            return await self.tools.answer(tool, self._caller, given)
        except BadCursor as problem:
            raise UsageError(str(problem)) from problem


Work = Callable[[JobCalls], Awaitable[int]]


def run_verb(
    options: argparse.Namespace,
    work: Work,
    *,
    needs_codex: bool = False,
    left: str = "you have left; the jobs go on",
) -> int:
    """Run a verb to its exit code; `left` is said after Ctrl-C."""
    refuse_workers()
    refuse_odd_text(options)
    try:
        return asyncio.run(_run(options, work, needs_codex=needs_codex))
    except KeyboardInterrupt:
        print(f"\nlaneway: {left}", file=sys.stderr)
        return LEFT


def refuse_workers() -> None:
    if is_in_worker(os.environ):
        raise UsageError(
            "This runs inside a worker of a background job, which has no part in other jobs: report to"
            " whoever started you instead."
        )


def refuse_odd_text(options: argparse.Namespace) -> None:
    """Arguments may be any bytes; what jobs are asked for, and found by, is UTF-8."""
    for value in vars(options).values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and any("\ud800" <= mark <= "\udfff" for mark in text):
                raise UsageError(f"{code_label(text)} is not valid UTF-8.")


async def _run(options: argparse.Namespace, work: Work, *, needs_codex: bool) -> int:
    named: Path | None = getattr(options, "cwd", None)
    cwd = folder(named or Path())
    settings = settings_in({"codex_bin": getattr(options, "codex_bin", None)}, cwd)
    is_rehearsal = bool(getattr(options, "rehearse", False))
    choice = CodexChoice(getattr(options, "codex_bin", None), settings.codex_bin, is_rehearsal)
    opened = (
        rehearsed_jobs(settings, choice, cwd if named else None)
        if is_rehearsal
        else command_jobs(settings, choice, cwd=cwd, needs_codex=needs_codex)
    )
    async with opened as tools:
        try:
            return await work(JobCalls(tools, settings))
        finally:
            for report in tools.reports:
                print(f"laneway: {report}", file=sys.stderr)


def print_json(answer: Mapping[str, Any]) -> None:
    """The answer of a tool on one line, as MCP clients get it."""
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


def print_rows(rows: list[str]) -> None:
    for row in rows:
        print(row)
    sys.stdout.flush()


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the MCP tool's result, one JSON object per line")


def add_job(parser: argparse.ArgumentParser, nargs: str | None = None, what: str = "") -> None:
    parser.add_argument(
        "jobs" if nargs else "job",
        nargs=nargs,
        metavar="JOB",
        help=what or "its id, or at least six characters of its beginning or end",
    )
