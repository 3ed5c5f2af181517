"""`laneway jobs node`: runs jobs for another machine that has started it, over ssh for instance."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from laneway.cli.codex_flags import folder
from laneway.cli.command_settings import settings_in
from laneway.cli.jobs.calls import refuse_workers

EPILOG = """\
Another machine starts it, by a command of that machine's own settings, and speaks JSON on its standard input
and output. It ends when that hangs up; the jobs go on. Jobs work in the repositories that the settings of
this machine name, with this machine's Codex, environment and limits.

  there:  laneway config set jobs.nodes.gpu1.command "ssh gpu1 laneway jobs node"
  both:   laneway config set jobs.repositories.site ~/src/site
  there:  laneway jobs spawn --node gpu1 -C ~/src/site "why does test_x fail?"
"""


def add_node(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run jobs for another machine, which starts this command."
    parser.epilog = EPILOG
    parser.add_argument(
        "--codex-bin", metavar="PATH", help="the codex executable (default: found automatically)"
    )
    parser.set_defaults(run=node)


def node(options: argparse.Namespace) -> int:
    refuse_workers()
    from laneway.app.jobs_node import serve_node
    from laneway.app.options import CodexChoice

    cwd = folder(Path())
    settings = settings_in({"codex_bin": options.codex_bin}, cwd)
    if sys.stdin.isatty():
        print("Another machine is to start this: see --help. Ctrl-C ends it.", file=sys.stderr, flush=True)
    asyncio.run(serve_node(settings, CodexChoice(options.codex_bin, settings.codex_bin), cwd=cwd))
    return 0
