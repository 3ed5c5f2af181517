"""The parser of `laneway jobs`: its verbs and what they say of themselves."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from laneway.cli.jobs import collecting, looking, node, resolving, spawning, waiting, watching
from laneway.cli.jobs.words import set_default_verb

EPILOG = """\
Jobs keep running when the command, the server or the client that started them ends. A queued job starts as
soon as another one has ended. `laneway mcp` offers the same to agents, as tools.

A job is named by its id, or by six characters of its beginning or its end.

  laneway jobs                                         running, queued and ended jobs
  laneway jobs spawn "why does test_x fail?"           start one; prints its id
  laneway jobs watch                                   see them at work, until all have ended
  laneway jobs result 89abcdef                         what one of them produced
  laneway jobs wait && laneway jobs resolve accept     when all have ended, keep what they changed
"""

VERBS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], str]] = {
    "spawn": (spawning.add_spawn, "start a job"),
    "list": (looking.add_list, "list jobs, as without a verb"),
    "status": (looking.add_status, "the status of jobs"),
    "result": (looking.add_result, "what a job produced"),
    "events": (looking.add_events, "what a job did, or is doing"),
    "send": (spawning.add_send, "continue the thread of a job"),
    "cancel": (waiting.add_cancel, "cancel jobs"),
    "wait": (waiting.add_wait, "wait until jobs have ended"),
    "watch": (watching.add_watch, "see jobs at work, until they have ended"),
    "resolve": (resolving.add_resolve, "see, keep or roll back what jobs changed"),
    "gc": (collecting.add_gc, "remove jobs that ended long ago"),
    "node": (node.add_node, "run jobs for another machine, which starts this"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Codex workers in the background: start them, watch them, use their results."
    parser.epilog = EPILOG
    set_default_verb(parser, "list")
    below = parser.add_subparsers(title="what to do", metavar="VERB")
    for name, (add, summary) in VERBS.items():
        add(below.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter))
