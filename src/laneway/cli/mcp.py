"""`laneway mcp`: an MCP server for named Codex sessions. `atm-agent-mcp serve` is the same program.

Answers `initialize` first: whatever the answer does not need is loaded while the client reads it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from laneway.app import engines, prestart
from laneway.app.options import McpOptions, tool_groups
from laneway.base.engines import DEFAULT_BACKEND
from laneway.base.errors import BinaryError, UsageError
from laneway.base.schema import TOOL_GROUPS
from laneway.base.settings import Settings
from laneway.cli.codex_flags import Flags, add_approval, add_config, add_model, add_sandbox, overrides
from laneway.cli.command_settings import claude_choice, codex_choice, settings_for
from laneway.cli.main import add_common
from laneway.cli.waiting import say_waiting
from laneway.codex import locate
from laneway.core.overrides import merged
from laneway.doors.mcp.definitions import server_info
from laneway.doors.mcp.names import AGENTS, CODEX, Names
from laneway.doors.mcp.stdio import OpenServer, serve_stdio

EPILOG = """\
Sessions have names (identities) and survive a restart. On every turn the model is given its name,
team, repository, branch and folder. When the server shuts down, each session is asked for a short
summary of its work, which it gets back when it is resumed: a model call of at most ten seconds
(`summaries = false` turns it off).

  laneway setup claude                     register it, and check that it works
  laneway mcp --tools codex                only `codex` and `codex-reply`
  laneway mcp --identity reviewer --readonly
  laneway mcp --resume                     continue the latest session of this identity
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "An MCP server for named Codex sessions, on standard input and output or over HTTP."
    parser.epilog = EPILOG
    add_serving(parser)
    parser.set_defaults(run=lambda options: asyncio.run(serve(options, AGENTS)))


def add_serving(parser: argparse.ArgumentParser) -> None:
    """The flags of this server, under whichever program name it is started."""
    _add_identity(parser.add_argument_group("who"))
    _add_codex(parser.add_argument_group("how Codex works (anything not given is left to your config.toml)"))
    _add_limits(parser.add_argument_group("limits"))
    _add_client_view(parser.add_argument_group("what clients get"))
    _add_http(parser.add_argument_group("on HTTP, for several clients (needs the package uvicorn)"))
    parser.add_argument(
        "--claude-bin", metavar="PATH", help="the Claude Code executable (default: found automatically)"
    )
    add_common(parser, has_json=False)


def _add_identity(group: Flags) -> None:
    group.add_argument(
        "--identity", metavar="NAME", help="name of sessions that ask for none; claimed at start"
    )
    group.add_argument("--team", metavar="NAME", help="the team whose sessions and mail are used")
    group.add_argument("--role", metavar="NAME", help="a preset from your settings")
    group.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="the first `codex` call continues this session, or the latest of the identity",
    )


def _add_codex(group: Flags) -> None:
    for add in (add_model, add_sandbox, add_approval, add_config):
        add(group)
    group.add_argument("--fast", action="store_true", help="use fast_model wherever no model is named")
    group.add_argument(
        "--readonly",
        "--explore",
        dest="readonly",
        action="store_true",
        help="no session may write, and no call may start programs through its config",
    )
    group.add_argument(
        "--backend",
        choices=("app-server", "mcp-server"),
        metavar="WHICH",
        help="app-server (default), or mcp-server: the removed server of a Codex up to 0.153.4",
    )
    group.add_argument("--subagents", action="store_true", help="let Codex start agents of its own")


def _add_limits(group: Flags) -> None:
    group.add_argument(
        "--timeout", type=int, metavar="S", help="for one call, not counting time spent on questions"
    )
    group.add_argument("--max-sessions", type=int, metavar="N", help="sessions open at once")
    group.add_argument("--max-turns", type=int, metavar="N", help="turns per session")
    group.add_argument("--max-tokens", type=int, metavar="N", help="tokens per session")


def _add_client_view(group: Flags) -> None:
    group.add_argument(
        "--tools", type=_groups, metavar="GROUPS", help=f"any of {','.join(TOOL_GROUPS)} (default: all)"
    )
    group.add_argument(
        "--events", choices=("full", "compact", "off"), metavar="HOW", help="full, compact, off"
    )
    group.add_argument(
        "--unattended",
        choices=("decline", "park"),
        metavar="WHAT",
        help="if nobody can be asked: decline, or park the question for agent_answer",
    )


def _add_http(group: Flags) -> None:
    group.add_argument(
        "--http", metavar="HOST:PORT", help="serve Streamable HTTP at this address instead; port 0 picks one"
    )
    group.add_argument(
        "--http-remote", action="store_true", help="allow an address that other machines can reach"
    )
    for flag, what in (("--http-host", "name in the Host header"), ("--http-origin", "Origin of a web page")):
        group.add_argument(flag, action="append", default=[], metavar="NAME", help=f"also allow this {what}")


def _groups(text: str) -> list[str]:
    return [piece.strip() for piece in text.split(",")]


def settings_of(options: argparse.Namespace, folder: Path) -> Settings:
    return settings_for(
        options,
        folder,
        model=options.model,
        sandbox=options.sandbox,
        approval_policy=options.approval,
        identity=options.identity,
        team=options.team,
        request_timeout_secs=options.timeout,
        max_concurrent_threads=options.max_sessions,
        max_turns=options.max_turns,
        max_tokens=options.max_tokens,
        tools=options.tools,
        events=options.events,
        unattended=options.unattended,
        transport=options.backend,
        claude_bin=options.claude_bin,
    )


async def serve(options: argparse.Namespace, names: Names) -> int:
    settings = settings_of(options, Path.cwd())
    check(options, settings)
    mcp = mcp_options(options, settings)
    if names is CODEX:
        mcp = msgspec.structs.replace(mcp, claude=None)  # the older program knows only Codex
    open_server = partial(opened, mcp, settings, names)
    if options.http is None:
        # What was asked for at start-up may fail: then the client must not be greeted first.
        opens_first = (
            options.identity is not None
            or options.resume is not None
            or settings.transport == "mcp-server"
            or names is CODEX
        )
        say_waiting("MCP server", "laneway setup claude")
        await serve_stdio(
            server_info(names, tool_groups(settings), mcp.backends), open_server, opens_first=opens_first
        )
    else:
        async with open_server() as opened_server:
            await serve_web(options, settings, opened_server)
    return 0


def check(options: argparse.Namespace, settings: Settings) -> None:
    """Report early what would keep the server from opening, as far as the flags and settings show it."""
    try:
        locate.find(options.codex_bin, configured=settings.codex_bin)
    except BinaryError:
        if not works_without_codex(options, settings):
            raise
    config_of(options)
    if options.fast and not settings.fast_model:
        raise UsageError(
            "--fast uses the model in fast_model, which is not set: set it, or leave out --fast."
        )
    if options.role and options.role not in settings.roles:
        known = ", ".join(sorted(settings.roles)) or "none"
        raise UsageError(f"There is no role {options.role} (there are: {known}).")


def works_without_codex(options: argparse.Namespace, settings: Settings) -> bool:
    """Whether sessions run on another engine, which is here, and no certain Codex was asked for."""
    if options.codex_bin or settings.codex_bin or os.environ.get(locate.ENVIRONMENT_KEY):
        return False
    if settings.engine == DEFAULT_BACKEND or settings.transport == "mcp-server":
        return False
    return engines.present(claude_choice(options, settings)) is not None


def config_of(options: argparse.Namespace) -> dict[str, Any]:
    """The overrides of Codex's config from the command line, for every thread."""
    subagents = {"features": {"multi_agent": True}} if options.subagents else {}
    return merged(subagents, overrides(options.config))


def mcp_options(options: argparse.Namespace, settings: Settings) -> McpOptions:
    return McpOptions(
        codex=codex_choice(options, settings),
        config=config_of(options),
        is_read_only=options.readonly,
        serves_http=options.http is not None,
        claims_identity=options.identity is not None,
        resume=options.resume,
        is_fast=options.fast,
        role=options.role,
        claude=engines.present(claude_choice(options, settings)),
    )


@asynccontextmanager
async def opened(options: McpOptions, settings: Settings, names: Names) -> AsyncIterator[OpenServer]:
    """Open the server. Its imports run first, in a thread: clients are served meanwhile."""
    await prestart.load("laneway.app.mcp")
    from laneway.app import mcp

    async with mcp.opened(options, settings, names) as server:
        yield server


async def serve_web(options: argparse.Namespace, settings: Settings, opened_server: OpenServer) -> None:
    """Serve MCP over HTTP until a signal."""
    # Imported here: a server on standard input and output does not need them.
    from laneway.cli.listen_address import listen_address
    from laneway.doors.ending import EndSignals
    from laneway.doors.mcp.http import serve_http

    address = listen_address("MCP", "--http", options.http, settings.http_token)
    stop = asyncio.Event()
    with EndSignals(stop):
        await serve_http(
            opened_server.server,
            **address._asdict(),
            stop=stop,
            shutdown=opened_server.shutdown,
            may_leave_machine=options.http_remote,
            hosts=tuple(options.http_host),
            origins=tuple(options.http_origin),
        )
