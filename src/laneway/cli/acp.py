"""`laneway acp`: Codex in any editor that speaks the Agent Client Protocol.

Greets first: what a greeting does not need is loaded while the editor reads it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from laneway import __version__
from laneway.base.errors import SessionClosed
from laneway.cli.main import add_common
from laneway.cli.waiting import say_waiting
from laneway.doors.acp.reception import Greeting
from laneway.doors.acp.stdio import serve_stdio

if TYPE_CHECKING:
    from laneway.cli.editor_house import Keeper

EPILOG = """\
Your editor starts it. For Zed, in settings.json:

  "agent_servers": { "Laneway": { "type": "custom", "command": "laneway", "args": ["acp"] } }

`laneway setup zed --door acp` writes this for you, `laneway setup jetbrains` does it for JetBrains.

Other editors: docs/acp.md. Until you choose a mode in the editor, your config.toml decides.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "An ACP agent on standard input and output, or on a WebSocket."
    parser.epilog = EPILOG
    parser.add_argument(
        "--steer",
        action="store_true",
        help="send a prompt that arrives during a turn into that turn (default: it waits)",
    )
    parser.add_argument(
        "--unstable", action="store_true", help="announce ACP features that are not stable yet (session/fork)"
    )
    parser.add_argument(
        "--v2", action="store_true", help="speak the draft of ACP 2 with clients that offer it; it may change"
    )
    parser.add_argument("--login", action="store_true", help="log in to Codex in this terminal, then exit")
    web = parser.add_argument_group("on a WebSocket, for remote editors (needs the package websockets)")
    web.add_argument("--ws", metavar="HOST:PORT", help="serve at this address instead; port 0 picks one")
    web.add_argument(
        "--ws-remote", action="store_true", help="allow an address that other machines can reach"
    )
    for flag, what in (("--ws-host", "name in the Host header"), ("--ws-origin", "Origin of a web page")):
        web.add_argument(flag, action="append", default=[], metavar="NAME", help=f"also allow this {what}")
    add_common(parser, has_json=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.login:
        return log_in(options)
    return asyncio.run(serve(options))


def log_in(options: argparse.Namespace) -> int:
    """What editors run in a terminal: appended to the command that they start us with."""
    from laneway.cli.login import login

    options.status, options.json = False, False
    options.rest = [] if _has_browser() else ["--device-auth"]
    return login(options)


def _has_browser() -> bool:
    """Whether a page that is opened here is one that the user sees."""
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


async def serve(options: argparse.Namespace) -> int:
    greeting = Greeting(__version__, program(), os.environ, options.unstable, options.v2)
    keepers: list[Keeper] = []
    is_ending = False

    def keeper() -> Keeper:
        if not keepers:
            if is_ending:
                raise SessionClosed(
                    "Laneway is shutting down"
                )  # a client that was greeted in the last moment
            from laneway.cli.editor_house import Keeper  # when the first client has been greeted

            keepers.append(Keeper(options, greeting))
        return keepers[0]

    async def shutdown() -> None:
        nonlocal is_ending
        is_ending = True
        for each in keepers:
            await each.aclose()

    if options.ws is None:
        say_waiting("ACP agent for editors", "laneway setup zed --door acp")
        await serve_stdio(greeting, lambda client, peer: keeper().engage(client, peer), shutdown)
    else:
        await serve_web(options, greeting, keeper())
    return 0


async def serve_web(options: argparse.Namespace, greeting: Greeting, keeper: Keeper) -> None:
    """Until a signal."""
    # Not paid for on standard input and output.
    from laneway.cli.web import web
    from laneway.doors.acp.socket import serve_socket
    from laneway.doors.ending import EndSignals

    place = web("ACP", "--ws", options.ws, keeper.settings.http_token)
    stop = asyncio.Event()
    with EndSignals(stop):
        try:
            await serve_socket(
                greeting,
                keeper.engage,
                **place._asdict(),
                stop=stop,
                on_stop=keeper.begin_shutdown,
                may_leave_machine=options.ws_remote,
                hosts=tuple(options.ws_host),
                origins=tuple(options.ws_origin),
            )
        finally:
            await keeper.aclose()


def program() -> tuple[str, ...]:
    """How an editor would start us once more."""
    return (sys.executable, "-m", "laneway", "acp")
