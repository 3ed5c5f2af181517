"""The command `laneway chat`: reads its flags, then serves conversations on the chosen platforms."""

from __future__ import annotations

import argparse
import asyncio
import os
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from laneway.app.chat_platforms import PLATFORMS, TERMINAL
from laneway.base.errors import UsageError
from laneway.cli.codex_flags import add_folder, folder
from laneway.cli.command_settings import claude_choice, codex_choice, settings_in
from laneway.cli.main import add_common

LEFT_BEHIND_S = 3.0
"""For what lane plugins have left behind, before the process ends without it."""
EPILOG = """\
Messages go to Claude; `/codex fix the tests` gives a task to Codex in the same conversation, and Claude
learns what was done. /help lists the commands. Enter sends, Alt-Enter starts a new line, Ctrl-C stops the
turn, pressed twice it leaves. If only Codex is logged in, Codex leads; if neither is, use --rehearse.

In a pipe each line is a message. Answers go to standard output, everything else to standard error; questions
that are still open at the end of input are declined. Exits with 1 if a turn failed.

  laneway chat
  laneway chat --resume                        continue the latest conversation in this folder
  laneway chat --lane codex
  laneway chat --rehearse                      the real engines, scripted models: no account, no network
  echo "what does this folder do?" | laneway chat
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Talk with Claude and Codex in one conversation."
    parser.epilog = EPILOG
    parser.add_argument(
        "--platform",
        action="append",
        choices=tuple(PLATFORMS),
        metavar="NAME",
        help=f"where to talk, repeatable: {', '.join(PLATFORMS)} (default: {TERMINAL})",
    )
    add_folder(parser, "the folder of new conversations (default: the current one)", Path())
    parser.add_argument(
        "--lane", metavar="NAME", help="the lane that leads (default: the setting chat.default_lane)"
    )
    parser.add_argument(
        "--busy",
        choices=("interrupt", "steer", "queue"),
        metavar="MODE",
        help="what a message does while a lane works: interrupt, steer, queue"
        " (default: the setting chat.busy)",
    )
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="continue this conversation, or the latest one in this folder",
    )
    parser.add_argument(
        "--claude-bin", metavar="PATH", help="the Claude Code executable (default: found automatically)"
    )
    add_common(parser, has_json=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from laneway.app.chat import ChatRequest, serve  # the contract of lanes and the store: not for --help
    from laneway.app.chat_lanes import ChosenEngines

    cwd = folder(options.cwd)
    platforms = tuple(dict.fromkeys(options.platform or (TERMINAL,)))
    if options.resume is not None and TERMINAL not in platforms:
        raise UsageError("--resume is for the terminal; elsewhere send /resume in the conversation.")
    if options.resume is not None and options.rehearse:
        raise UsageError("--resume cannot be used with --rehearse, which keeps no conversation.")
    settings = settings_in(
        {
            "codex_bin": options.codex_bin,
            "claude_bin": options.claude_bin,
            "chat.busy": options.busy,
        },
        cwd,
    )
    chosen = ChosenEngines(
        codex=codex_choice(options, settings),
        claude=claude_choice(options, settings),
        retry_s=settings.retry_secs,
    )
    request = ChatRequest(
        chosen=chosen,
        settings=settings,
        cwd=cwd,
        platforms=platforms,
        lane=options.lane,
        resume=options.resume,
    )
    return asyncio.run(_end_in_time(serve(request), has_plugins=bool(settings.chat_lanes)))


async def _end_in_time(serving: Coroutine[Any, Any, int], *, has_plugins: bool) -> int:
    """Everything of ours is closed then; a plugin may have left a task or a thread that ends for nobody."""
    code = 1
    try:
        code = await serving
        return code
    finally:
        if has_plugins:
            timer = threading.Timer(LEFT_BEHIND_S, os._exit, (code,))
            timer.daemon = True  # nobody waits for it if all ends by itself
            timer.start()
