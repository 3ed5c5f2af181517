"""`laneway mcp-server`: replaces the removed `codex mcp-server`, with the same flags and tools.

Answers `initialize` before it loads the rest, as `laneway mcp` does.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from laneway import __version__
from laneway.app import prestart
from laneway.app.options import DropInOptions
from laneway.base.settings import Settings
from laneway.cli.codex_flags import add_approval, add_config, add_model, add_sandbox, folder, overrides
from laneway.cli.codex_profile import codex_home, profile
from laneway.cli.command_settings import codex_choice, settings_for
from laneway.cli.main import add_common
from laneway.cli.waiting import say_waiting
from laneway.codex import locate
from laneway.core.overrides import merged
from laneway.doors.mcp.schemas import dropin_front
from laneway.doors.mcp.stdio import OpenServer, serve_stdio

EPILOG = """\
Change one word in your client's config, and nothing else:

  codex -m gpt-5.5 mcp-server          before; Codex 0.154 removed it
  laneway -m gpt-5.5 mcp-server        now (flags may come before or after mcp-server)

`laneway migrate` does that for all clients it finds. For named sessions, limits and mail use
`laneway mcp`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "An MCP server with the tools `codex` and `codex-reply`, on standard input and output."
    )
    parser.epilog = EPILOG
    add_model(parser)
    add_sandbox(parser)
    add_approval(parser)
    add_config(parser)
    parser.add_argument("-p", "--profile", metavar="NAME", help="a profile from your config")
    parser.add_argument(
        "-C", "--cd", type=Path, default=Path(), metavar="DIR", help="the folder Codex works in"
    )
    parser.add_argument(
        "--add-dir", action="append", default=[], metavar="DIR", help="also allow writing here"
    )
    parser.add_argument(
        "--enable", action="append", default=[], metavar="FEATURE", help="turn a Codex feature on"
    )
    parser.add_argument(
        "--disable", action="append", default=[], metavar="FEATURE", help="turn a Codex feature off"
    )
    parser.add_argument("--search", action="store_true", help="let the model search the web")
    parser.add_argument("--full-auto", action="store_true", help="like -s workspace-write -a on-request")
    parser.add_argument(
        "--dangerously-bypass-approvals-and-sandbox",
        "--yolo",
        dest="yolo",
        action="store_true",
        help="like -s danger-full-access -a never",
    )
    parser.add_argument(
        "--events",
        choices=("full", "compact", "off"),
        metavar="HOW",
        help="how much of a running turn the client is sent: full (default), compact, off",
    )
    add_common(parser, has_json=False)
    parser.set_defaults(run=lambda options: asyncio.run(serve(options)))


async def serve(options: argparse.Namespace) -> int:
    cwd = folder(options.cd)
    # Only the flags count: like the old server, it follows the user's own config.toml.
    settings = settings_for(options, cwd, events=options.events)
    locate.find(options.codex_bin, configured=settings.codex_bin)
    dropin = dropin_options(options, settings, cwd)
    say_waiting("MCP server", "laneway setup claude")
    await serve_stdio(dropin_front(__version__), partial(opened, dropin, settings))
    return 0


def dropin_options(options: argparse.Namespace, settings: Settings, cwd: Path) -> DropInOptions:
    """What the command line asks for, for every thread."""
    sandbox, approval = options.sandbox, options.approval
    if options.yolo:
        sandbox, approval = "danger-full-access", "never"
    elif options.full_auto:
        sandbox, approval = sandbox or "workspace-write", approval or "on-request"
    return DropInOptions(
        codex=codex_choice(options, settings),
        cwd=cwd,
        config=config_of(options),
        model=options.model,
        sandbox=sandbox,
        approval_policy=approval,
    )


@asynccontextmanager
async def opened(options: DropInOptions, settings: Settings) -> AsyncIterator[OpenServer]:
    """Open the server. Its imports run first, in a thread: the client is served meanwhile."""
    await prestart.load("laneway.app.mcp_server")
    from laneway.app import mcp_server

    async with mcp_server.opened(options, settings) as server:
        yield server


def config_of(options: argparse.Namespace) -> dict[str, Any]:
    """The overrides of Codex's config from the command line, for every thread."""
    config: dict[str, Any] = {}
    for feature in options.enable:
        config[f"features.{feature}"] = True
    for feature in options.disable:
        config[f"features.{feature}"] = False
    if options.profile:
        config |= profile(options.profile, codex_home())
    if options.search:
        config["web_search"] = "live"
    if options.add_dir:
        config["sandbox_workspace_write.writable_roots"] = [str(folder(Path(d))) for d in options.add_dir]
    return merged(config, overrides(options.config))
