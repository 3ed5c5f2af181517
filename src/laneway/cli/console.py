"""`laneway console`: a page in the browser with everything of Laneway's that runs on this machine."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from laneway.cli.codex_flags import folder
from laneway.cli.command_settings import claude_choice, codex_choice, settings_in

EPILOG = """\
Shows the live sessions of every front end (MCP servers, editors, chat, `laneway ask`) and their last output:
watch them, stop them, answer their questions. Background jobs with queue, events, files and conflicts:
cancel, roll back, run again, undo. Team mail, and the checks of `laneway doctor`. On the same page are your
conversations, as with `laneway chat --platform web`.

The address that is printed contains a token. Anyone who has it can do all this, until the command ends.
Keep the command in the foreground of your terminal: only then are answers to questions accepted.
Ctrl-C ends it.

  laneway console
  laneway console --port 8123      the same port each time
"""
WEB = "web"
"""The chat platform on the page."""
MAX_PORT = 65535


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Watch and steer what runs on this machine, in your browser."
    parser.epilog = EPILOG
    parser.add_argument(
        "--port",
        type=_port,
        metavar="PORT",
        help="listen there (default: the setting page.port, else a free port)",
    )
    parser.add_argument(
        "--codex-bin", metavar="PATH", help="the Codex executable of conversations and of jobs run again"
    )
    parser.add_argument("--claude-bin", metavar="PATH", help="the Claude Code executable of conversations")
    parser.set_defaults(run=run, rehearse=False)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number up to {MAX_PORT}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    return asyncio.run(serve(options))


async def serve(options: argparse.Namespace) -> int:
    """Serve until a signal."""
    # Imported here: `laneway console --help` needs none of it.
    from laneway.app.chat import ChatRequest
    from laneway.app.chat_lanes import ChosenEngines
    from laneway.app.chat_platforms import require
    from laneway.app.console import serve_console
    from laneway.cli.jobs.calls import refuse_workers
    from laneway.doors.ending import EndSignals

    refuse_workers()
    cwd = folder(Path())
    settings = settings_in({"codex_bin": options.codex_bin, "claude_bin": options.claude_bin}, cwd)
    chosen = ChosenEngines(
        codex=codex_choice(options, settings),
        claude=claude_choice(options, settings),
        retry_s=settings.retry_secs,
    )
    request = ChatRequest(chosen=chosen, settings=settings, cwd=cwd, platforms=(WEB,))
    require(request.platforms)
    ended = asyncio.Event()
    with EndSignals(ended):
        serving = asyncio.ensure_future(serve_console(request, port=options.port, on_ready=announce))
        ending = asyncio.ensure_future(ended.wait())
        await asyncio.wait((serving, ending), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not ended.is_set():
            await serving  # raises why it ended
        serving.cancel()
        await asyncio.wait((serving,))
    return 0


def announce(url: str) -> None:
    """The token is shown here only, and stands in no log."""
    sys.stdout.write(f"laneway: the console is at {url}&to=/sessions (Ctrl-C ends it)\n")
    sys.stdout.flush()
