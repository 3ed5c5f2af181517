"""`laneway acp`: Codex in any editor that speaks the Agent Client Protocol.

Answers `initialize` first: whatever the answer does not need is loaded while the editor reads it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from laneway import __version__
from laneway.base.errors import SessionClosed
from laneway.cli.command_settings import codex_choice, settings_for
from laneway.cli.main import add_common
from laneway.cli.waiting import say_waiting
from laneway.doors.acp.handshake import Greeting
from laneway.doors.acp.stdio import serve_stdio

if TYPE_CHECKING:
    from laneway.app.acp import AcpService
    from laneway.base.settings import Settings
    from laneway.doors.acp.agent import Agent
    from laneway.doors.acp.client import EditorClient
    from laneway.wire.peer import Peer

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
    listen_address = parser.add_argument_group(
        "on a WebSocket, for remote editors (needs the package websockets)"
    )
    listen_address.add_argument(
        "--ws", metavar="HOST:PORT", help="serve at this address instead; port 0 picks one"
    )
    listen_address.add_argument(
        "--ws-remote", action="store_true", help="allow an address that other machines can reach"
    )
    for flag, what in (("--ws-host", "name in the Host header"), ("--ws-origin", "Origin of a web page")):
        listen_address.add_argument(
            flag, action="append", default=[], metavar="NAME", help=f"also allow this {what}"
        )
    add_common(parser, has_json=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.login:
        return log_in(options)
    return asyncio.run(serve(options))


def log_in(options: argparse.Namespace) -> int:
    """Log in to Codex in this terminal: editors append `--login` to the command that starts the agent."""
    from laneway.cli.login import become_codex_login
    from laneway.codex import locate

    codex = locate.find(options.codex_bin, settings_for(options, Path()).codex_bin)
    return become_codex_login(codex, [] if _has_browser() else ["--device-auth"])


def _has_browser() -> bool:
    """Whether the user would see a page that is opened on this machine."""
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


async def serve(options: argparse.Namespace) -> int:
    greeting = Greeting(__version__, program(), os.environ, options.unstable, options.v2)
    if options.ws is None:
        say_waiting("ACP agent for editors", "laneway setup zed --door acp")
        service = _LazyService(options, greeting)
        await serve_stdio(greeting, service.engage, service.aclose)
    else:
        await serve_web(options, greeting)
    return 0


class _LazyService:
    """The service of one client on standard input and output, loaded when that client has been greeted."""

    def __init__(self, options: argparse.Namespace, greeting: Greeting) -> None:
        self._options = options
        self._greeting = greeting
        self._service: AcpService | None = None
        self._is_ending = False

    async def engage(self, client: EditorClient, peer: Peer) -> Agent:
        if self._service is None:
            if self._is_ending:  # a client that was greeted at the last moment
                raise SessionClosed("Laneway is shutting down")
            settings = settings_for(self._options, Path.cwd())
            self._service = service_of(self._options, settings, self._greeting)
        return await self._service.engage(client, peer)

    async def aclose(self) -> None:
        self._is_ending = True
        if self._service is not None:
            await self._service.aclose()


def service_of(options: argparse.Namespace, settings: Settings, greeting: Greeting) -> AcpService:
    from laneway.app.acp import AcpService  # heavy: never before a greeting

    return AcpService(codex_choice(options, settings), settings, greeting, steers=options.steer)


async def serve_web(options: argparse.Namespace, greeting: Greeting) -> None:
    """Serve ACP on a WebSocket until a signal."""
    # Imported here: an agent on standard input and output does not need them.
    from laneway.cli.listen_address import listen_address
    from laneway.doors.acp.socket import serve_socket
    from laneway.doors.ending import EndSignals

    settings = settings_for(options, Path.cwd())
    service = service_of(options, settings, greeting)
    address = listen_address("ACP", "--ws", options.ws, settings.http_token)
    stop = asyncio.Event()
    with EndSignals(stop):
        try:
            await serve_socket(
                greeting,
                service.engage,
                **address._asdict(),
                stop=stop,
                on_stop=service.begin_shutdown,
                may_leave_machine=options.ws_remote,
                hosts=tuple(options.ws_host),
                origins=tuple(options.ws_origin),
            )
        finally:
            await service.aclose()


def program() -> tuple[str, ...]:
    """The command with which an editor can start this agent again."""
    return (sys.executable, "-m", "laneway", "acp")
