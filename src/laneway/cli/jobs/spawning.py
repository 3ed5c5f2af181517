"""`laneway jobs spawn|send`: starts jobs, and continues the threads of earlier ones."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any, get_args

from laneway.base.errors import UsageError
from laneway.base.plain import code_label, plain
from laneway.base.schema import SANDBOXES
from laneway.cli.ask.inputs import FROM_STDIN, is_terminal, read_stdin, schema_of
from laneway.cli.codex_flags import add_folder
from laneway.cli.jobs.calls import JobCalls, add_job, add_json, print_json, run_verb
from laneway.cli.jobs.durations import milliseconds
from laneway.cli.jobs.looking import show_result
from laneway.cli.jobs.names import find_job, find_run
from laneway.cli.jobs.waiting import wait_for
from laneway.cli.jobs.words import take_words_behind_flags
from laneway.jobs import tool_schemas
from laneway.jobs.model import HERE, Isolation

MAX_DIGITS = 12
"""Of a number of tokens."""
EDITS_STAY = (
    "What this rehearsal edits in {} stays, and its records are removed when it ends: `laneway jobs resolve` "
    "cannot roll it back. Without -C it works in a temporary repository."
)
SPAWN_EPILOG = """\
Prints the id of the job at once; the job keeps running after this command, and every other Laneway process,
has ended. A worker sees only the prompt and the folder, so put everything it needs to know into the prompt.

exit codes: 0 started, or with --wait: succeeded, 1 it did not succeed, 2 the command line or a setting is
            wrong, 3 no usable Codex was found, 130 interrupted while waiting; the job goes on

  laneway jobs spawn "find out why test_x fails"
  laneway jobs spawn - < task.md --sandbox workspace-write --scope 'src/parser/**'
  laneway jobs spawn "summarise CHANGELOG.md" --wait --timeout 10m
  laneway jobs spawn --rehearse --wait "%say hello"     the real Codex, a scripted model
"""


def add_spawn(parser: argparse.ArgumentParser) -> None:
    parser.description = "Start a Codex worker in the background."
    parser.epilog = SPAWN_EPILOG
    parser.add_argument("prompt", nargs="?", help="the whole task; - or none reads it from standard input")
    add_folder(parser, "the folder to work in (default: the current one)")
    parser.add_argument(
        "-s",
        "--sandbox",
        choices=SANDBOXES,
        metavar="MODE",
        help=f"{', '.join(SANDBOXES)} (default: read-only)",
    )
    parser.add_argument("-m", "--model", metavar="NAME", help="the model")
    parser.add_argument("--effort", metavar="LEVEL", help="how long the model thinks")
    parser.add_argument(
        "--output-schema", metavar="FILE", help="a JSON Schema that the final message must follow"
    )
    _add_limits(parser)
    _add_edits(parser)
    parser.add_argument(
        "--priority", type=_signed, metavar="N", help="higher starts first (default: 0, from -100 to 100)"
    )
    parser.add_argument(
        "--tag", dest="tags", action="append", metavar="TAG", help="to find it again by (repeatable)"
    )
    parser.add_argument(
        "--node", metavar="NAME", help="a machine of your settings, or any (default: this one)"
    )
    parser.add_argument("--wait", action="store_true", help="wait until it has ended, and print its result")
    parser.add_argument(
        "--rehearse",
        action="store_true",
        help="real Codex, scripted model on loopback; with --wait, as the job ends with this command",
    )
    parser.add_argument(
        "--codex-bin", metavar="PATH", help="the codex executable (default: found automatically)"
    )
    add_json(parser)
    parser.set_defaults(run=spawn)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=milliseconds, metavar="TIME", help="end it after 90s, 30m, 2h … (default: 1 hour)"
    )
    parser.add_argument(
        "--stall",
        type=milliseconds,
        metavar="TIME",
        help="end it when it has made no progress for so long (default: 15 minutes)",
    )
    parser.add_argument(
        "--retries",
        type=_signed,
        metavar="N",
        help="new attempts after a failure, its edits given back (default: 0)",
    )
    parser.add_argument(
        "--token-budget", type=number_of_tokens, metavar="N", help="stop it when it has used more tokens"
    )


def _add_edits(parser: argparse.ArgumentParser) -> None:
    edits = parser.add_argument_group("jobs that may write")
    edits.add_argument(
        "--scope",
        action="append",
        metavar="GLOB",
        help="a path or glob that it will edit, from the root of the repository (repeatable);"
        " jobs whose scopes meet run one after the other",
    )
    edits.add_argument(
        "--overlap", choices=("queue", "allow"), help="what to do about scopes that meet (default: queue)"
    )
    edits.add_argument(
        "--isolation",
        choices=get_args(Isolation),
        metavar="HOW",
        help="shared, overlay, worktree (default: shared, all jobs edit one work tree)",
    )
    edits.add_argument("--run", dest="in_run", metavar="RUN", help="only if this is the open run of the tree")
    edits.add_argument("--require-clean", action="store_true", help="refuse a tree with uncommitted changes")


def spawn(options: argparse.Namespace) -> int:
    if options.rehearse and not options.wait:
        raise UsageError("A rehearsal ends with this command, and its jobs with it: add --wait.")
    if options.rehearse and options.cwd and options.sandbox not in (None, "read-only"):
        print(f"laneway: {EDITS_STAY.format(code_label(str(options.cwd)))}", file=sys.stderr)
    arguments: dict[str, Any] = {
        "cwd": str(options.cwd) if options.cwd else None,
        "sandbox": options.sandbox,
        "model": options.model,
        "effort": options.effort,
        "outputSchema": schema_of(options.output_schema),
        "timeoutMs": options.timeout,
        "stallMs": options.stall,
        "scope": options.scope,
        "priority": options.priority,
        "retries": options.retries,
        "isolation": options.isolation,
        "tags": options.tags,
        "tokenBudget": options.token_budget,
        "requireClean": options.require_clean or None,
        "overlap": options.overlap,
        "node": options.node,
    }
    # Read last: errors in the flags are reported before somebody has typed a long prompt.
    arguments["prompt"] = prompt_of(options.prompt)

    async def work(calls: JobCalls) -> int:
        run = find_run(calls.tools.jobs, options.in_run)
        return await _begin(calls, tool_schemas.SPAWN.name, arguments | {"run": run}, options)

    needs_codex = options.node is None or options.node in HERE
    return run_verb(options, work, needs_codex=needs_codex, left=_left(options))


def prompt_of(argument: str | None) -> str:
    """The argument; else standard input. Where there is an argument, the input is left to others."""
    if argument is not None and argument != FROM_STDIN:
        return argument
    if argument is None and is_terminal():
        raise UsageError("Say what the job is to do, or - to type it or read it from standard input.")
    return read_stdin()


def _left(options: argparse.Namespace) -> str:
    return (
        "the job has ended with its rehearsal" if getattr(options, "rehearse", False) else "the job goes on"
    )


async def _begin(calls: JobCalls, tool: str, arguments: dict[str, Any], options: argparse.Namespace) -> int:
    answer = await calls.answer(tool, arguments)
    if options.json:
        print_json(answer)
    else:
        print(answer["jobId"], flush=True)
    problem = await asyncio.to_thread(calls.tools.problem_of, answer["jobId"])
    if problem:
        print(f"laneway: {plain(problem)} The job waits here until it is back.", file=sys.stderr)
    if not options.wait:
        return 0
    await wait_for(calls, "all", [answer["jobId"]])
    return await show_result(calls, answer["jobId"], options)


# ── send ───────────────────────────────────────────────────────────────────

SEND_EPILOG = """\
A new job with the settings of the earlier one, on its thread: the worker knows what it did before. It is
queued while the earlier job is still running.

  laneway jobs send 89abcdef "and now the tests"
"""


def add_send(parser: argparse.ArgumentParser) -> None:
    parser.description = "Continue the thread of a job, with a new job."
    parser.epilog = SEND_EPILOG
    add_job(parser)
    parser.add_argument("prompt", nargs="?", help="what to do next; - or none reads it from standard input")
    parser.add_argument("--wait", action="store_true", help="wait until it has ended, and print its result")
    parser.add_argument(
        "--codex-bin", metavar="PATH", help="the codex executable (default: found automatically)"
    )
    add_json(parser)
    take_words_behind_flags(parser, "prompt")
    parser.set_defaults(run=send)


def send(options: argparse.Namespace) -> int:
    prompt = prompt_of(options.prompt)

    async def work(calls: JobCalls) -> int:
        job = find_job(calls.tools.jobs, options.job)
        return await _begin(calls, tool_schemas.SEND.name, {"jobId": job.job_id, "prompt": prompt}, options)

    return run_verb(options, work, needs_codex=True, left=_left(options))


def number_of_tokens(text: str) -> int:
    """`200000`, `200k`, `2M`."""
    factor = {"k": 1000, "M": 1_000_000}.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS and int(digits) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens such as 200000, 200k or 2M")
    return int(digits) * factor


def _signed(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 6):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)
