"""`laneway console`: a page in the browser with everything of Laneway's that runs on this machine."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from laneway.cli.codex_flags import folder

EPILOG = """\
Shows the live sessions of every front end (MCP servers, editors, chat, `laneway ask`) with their last words:
watch them, stop them, answer what they ask. Background jobs with queue, events, files and conflicts: cancel,
roll back, run again, undo. Team mail, and the checks of `laneway doctor`. Nothing of another process is taken
over.

The address that is printed has a token: whoever has it can do all this. It is valid until the command ends.
Leave it in the foreground of your terminal: answers are taken only from a person's console. Ctrl-C ends it.

  laneway console
  laneway console --port 8123      the same port each time
"""
MAX_PORT = 65535


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Watch and steer what runs on this machine, in your browser."
    parser.epilog = EPILOG
    parser.add_argument(
        "--port", type=_port, default=0, metavar="PORT", help="listen there (default: a free port)"
    )
    parser.add_argument("--codex-bin", metavar="PATH", help="the Codex executable of jobs that are run again")
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number up to {MAX_PORT}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    return asyncio.run(serve(options))


async def serve(options: argparse.Namespace) -> int:
    """Serve until a signal."""
    # Imported here: `laneway console --help` needs none of it.
    from laneway.app.console import serve_console
    from laneway.app.options import CodexChoice
    from laneway.cli.command_settings import settings_in
    from laneway.cli.jobs.calls import refuse_workers
    from laneway.doors.ending import EndSignals

    refuse_workers()
    cwd = folder(Path())
    settings = settings_in({"codex_bin": options.codex_bin}, cwd)
    choice = CodexChoice(options.codex_bin, settings.codex_bin, False)
    ended = asyncio.Event()
    with EndSignals(ended):
        serving = asyncio.ensure_future(
            serve_console(settings, choice, cwd=cwd, port=options.port, on_ready=announce)
        )
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
